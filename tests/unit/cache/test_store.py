from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cached import cached

from flyball.cache import CachedObject, Store, UnknownIndex, by_controller_uid, by_label, by_namespace, by_owner_uid

OWNERS = [
    {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u1"},
    {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "u2", "controller": True},
]


def test_it_holds_the_last_version_of_each_object() -> None:
    store = Store()
    first, second = cached("a", 1), cached("a", 2)
    assert store.put(first) is None
    assert store.put(second) is first
    assert store.get(("ns", "a")) is second
    assert len(store) == 1
    assert ("ns", "a") in store
    assert store.remove(("ns", "a")) is second
    assert store.remove(("ns", "a")) is None
    assert store.list() == []


def test_ready_made_indexes() -> None:
    store = Store({"ns": by_namespace, "app": by_label("app"), "owner": by_owner_uid})
    store.put(cached("a", labels={"app": "web"}, ownerReferences=OWNERS))
    store.put(cached("b", namespace="other"))
    store.add_index("controller", by_controller_uid)
    assert [obj.name for obj in store.by_index("ns", "other")] == ["b"]
    assert [obj.name for obj in store.by_index("app", "web")] == ["a"]
    assert [obj.name for obj in store.by_index("owner", "u1")] == ["a"]
    assert [obj.name for obj in store.by_index("controller", "u2")] == ["a"]
    assert store.by_index("controller", "u1") == []


def test_an_object_moves_within_an_index() -> None:
    store = Store({"app": by_label("app")})
    store.put(cached("a", 1, labels={"app": "web"}))
    store.put(cached("a", 2, labels={"app": "db"}))
    assert store.by_index("app", "web") == []
    assert [obj.resource_version for obj in store.by_index("app", "db")] == ["2"]
    store.remove(("ns", "a"))
    assert store.by_index("app", "db") == []


@pytest.mark.capability("C18")
def test_an_index_function_runs_once_per_change() -> None:
    calls: list[str] = []

    def counting(view: CachedObject) -> list[str]:
        calls.append(view.resource_version)
        return ["all", "all"]

    store = Store({"count": counting})
    for version in range(3):
        store.put(cached("a", version))
    for _ in range(10):
        assert len(store.by_index("count", "all")) == 1
    store.remove(("ns", "a"))
    assert calls == ["0", "1", "2"]


def test_an_unknown_index_is_an_error() -> None:
    with pytest.raises(UnknownIndex, match="there is no index 'app' \\(there are: ns\\); add it"):
        Store({"ns": by_namespace}).by_index("app", "web")


def test_one_name_is_one_function() -> None:
    store = Store({"ns": by_namespace})
    store.add_index("ns", by_namespace)
    with pytest.raises(ValueError, match="is there already, with another function"):
        store.add_index("ns", by_owner_uid)


def test_a_failing_index_function_loses_no_object(caplog: pytest.LogCaptureFixture) -> None:
    def bad(view: CachedObject) -> list[str]:
        raise RuntimeError("no")

    store = Store({"bad": bad})
    store.put(cached("a"))
    assert store.get(("ns", "a")) is not None
    assert store.by_index("bad", "x") == []
    assert "index bad: its function failed on <Widget ns/a at 1>" in caplog.text


def test_replace_makes_one_namespace_equal() -> None:
    store = Store()
    store.replace([cached("a"), cached("b"), cached("c", namespace="other")], "5")
    store.replace([cached("b", 6)], "6", namespace="ns")
    assert sorted(obj.name for obj in store.list()) == ["b", "c"]
    assert [obj.name for obj in store.list("ns")] == ["b"]
    assert store.keys("other") == [("other", "c")]
    assert store.resource_version == "6"


names = st.sampled_from(["a", "b", "c", "d"])
labels = st.sampled_from(["x", "y", "z"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(names, st.one_of(st.none(), labels))))
def test_an_index_shows_what_a_scan_would(changes: list[tuple[str, str | None]]) -> None:
    store = Store({"app": by_label("app")})
    for version, (name, label) in enumerate(changes):
        if label is None:
            store.remove(("ns", name))
        else:
            store.put(cached(name, version, labels={"app": label}))
    for label in ("x", "y", "z"):
        scanned = {obj for obj in store.list() if obj.record.labels.get("app") == label}
        assert set(store.by_index("app", label)) == scanned


def test_readers_in_threads_see_whole_states() -> None:
    """Two objects are always replaced together: no reader may see one without the other."""
    store = Store({"app": by_label("app")})
    pairs = [[cached(name, version, labels={"app": "web"}) for name in ("a", "b")] for version in range(2)]
    done = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not done.is_set():
            versions = {obj.resource_version for obj in store.by_index("app", "web")}
            if len(versions) > 1:
                wrong.append(versions)

    readers = [threading.Thread(target=read) for _ in range(3)]
    store.replace(pairs[0])
    for reader in readers:
        reader.start()
    for turn in range(500):
        store.replace(pairs[turn % 2])
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []

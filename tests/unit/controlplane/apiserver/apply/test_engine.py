"""Server-side apply: who owns what after a write, and who is in the way of one."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flyball.api.structural import compile_schema, drop_nulls
from flyball.controlplane.apiserver.apply import (
    ApplyConflict,
    Managed,
    NotTyped,
    Operation,
    apply,
    keep_times,
    path_text,
    track,
)

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
PORT = {
    "type": "object",
    "properties": {"port": NUMBER, "protocol": {**TEXT, "default": "TCP"}, "name": TEXT},
}
SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "apiVersion": TEXT,
            "kind": TEXT,
            "metadata": {
                "type": "object",
                "properties": {
                    "name": TEXT,
                    "uid": TEXT,
                    "labels": {"type": "object", "additionalProperties": TEXT},
                    "annotations": {"type": "object", "additionalProperties": TEXT},
                    "finalizers": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                },
            },
            "spec": {
                "type": "object",
                "properties": {
                    "n": NUMBER,
                    "atom": {"type": "array", "items": TEXT},
                    "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                    "map": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["k"],
                        "items": {"type": "object", "properties": {"k": TEXT, "v": TEXT, "w": TEXT}},
                    },
                    "ports": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": PORT,
                    },
                    "ref": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": TEXT, "b": TEXT}},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            },
            "status": {"type": "object", "properties": {"phase": TEXT}},
        },
    }
)
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def by(manager: str, minutes: int = 0, **more: Any) -> Operation:
    now = NOW + timedelta(minutes=minutes)
    return Operation(manager, "v1", now, {"v1": SCHEMA}.get, **more)


def obj(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}, **({"spec": spec} if spec else {})}


def stored(value: dict[str, Any]) -> dict[str, Any]:
    value["metadata"].setdefault("uid", "u1")
    return value


def created(manager: str, **spec: Any) -> dict[str, Any]:
    return stored(apply({"metadata": {}}, obj(**spec), by(manager)))


def owners(value: dict[str, Any]) -> dict[str, set[str]]:
    managed = Managed.read(value["metadata"].get("managedFields"))
    return {key.manager: {path_text(path) for path in entry.fields} for key, entry in managed.entries.items()}


def test_the_first_apply_owns_what_it_names() -> None:
    value = created("a", n=1, atom=["x"], set=["s"], map=[{"k": "1", "v": "v"}], ref={"a": "1"}, free={"f": {"g": 1}})
    assert owners(value) == {
        "a": {
            ".spec.n",
            ".spec.atom",
            '.spec.set[="s"]',
            '.spec.map[k="1"]',
            '.spec.map[k="1"].k',
            '.spec.map[k="1"].v',
            ".spec.ref",
            ".spec.free.f",
            ".spec.free.f.g",
        }
    }
    (entry,) = value["metadata"]["managedFields"]
    assert entry["fieldsV1"]["f:spec"]["f:map"] == {'k:{"k":"1"}': {".": {}, "f:k": {}, "f:v": {}}}
    assert (entry["operation"], entry["time"]) == ("Apply", "2030-01-01T00:00:00Z")


def test_another_value_of_an_owned_field_is_a_conflict_that_names_the_owner() -> None:
    value = created("m1", n=1, atom=["x"], map=[{"k": "1", "v": "v"}])
    with pytest.raises(ApplyConflict) as conflict:
        apply(value, obj(n=2, atom=["y"], map=[{"k": "1", "v": "w"}]), by("m2"))
    assert str(conflict.value) == (
        'Apply failed with 3 conflicts: conflicts with "m1":\n- .spec.atom\n- .spec.n\n- .spec.map[k="1"].v'
    )
    assert conflict.value.causes()[0] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "m1"',
        "field": ".spec.atom",
    }
    with pytest.raises(ApplyConflict, match=r'^Apply failed with 1 conflict: conflict with "m1": \.spec\.n$'):
        apply(value, obj(n=2), by("m2"))


def test_the_same_value_is_shared_and_giving_it_up_leaves_it_to_the_other() -> None:
    value = apply(created("m1", n=1), obj(n=1), by("m2"))
    assert owners(value) == {"m1": {".spec.n"}, "m2": {".spec.n"}}
    value = apply(value, obj(), by("m1"))
    assert (value["spec"], owners(value)) == ({"n": 1}, {"m2": {".spec.n"}})


def test_what_is_named_no_more_goes_if_nobody_else_has_it() -> None:
    value = created("m1", n=1, map=[{"k": "1", "v": "v"}, {"k": "2"}], set=["s", "t"])
    value = apply(value, obj(map=[{"k": "2"}], set=["t"]), by("m1"))
    assert value["spec"] == {"map": [{"k": "2"}], "set": ["t"]}


def test_an_item_that_another_has_a_part_of_stays() -> None:
    value = created("m1", map=[{"k": "1", "v": "v"}])
    value = apply(value, obj(map=[{"k": "1", "w": "w"}]), by("m2"))
    value = apply(value, obj(map=[]), by("m1"))
    assert value["spec"]["map"] == [{"k": "1", "w": "w"}]


def test_force_takes_the_field() -> None:
    value = apply(created("m1", n=1), obj(n=2), by("m2"), force=True)
    assert (value["spec"]["n"], owners(value)) == (2, {"m2": {".spec.n"}})


def test_items_of_others_keep_their_order_and_new_ones_come_last() -> None:
    value = created("m1", map=[{"k": "a"}, {"k": "b"}])
    value = apply(value, obj(map=[{"k": "c"}, {"k": "d"}]), by("m2"))
    assert [item["k"] for item in value["spec"]["map"]] == ["a", "b", "c", "d"]
    value = apply(value, obj(map=[{"k": "b"}, {"k": "a"}]), by("m1"))
    assert [item["k"] for item in value["spec"]["map"]] == ["b", "c", "d", "a"]


def test_defaults_of_keys_count() -> None:
    value = created("m1", ports=[{"port": 80}])
    assert '.spec.ports[port=80,protocol="TCP"]' in owners(value)["m1"]
    value = apply(value, obj(ports=[{"port": 80, "protocol": "TCP", "name": "web"}]), by("m2"))
    assert len(value["spec"]["ports"]) == 1


def test_an_update_takes_what_it_changes_and_conflicts_never() -> None:
    value = created("m1", n=1, atom=["x"])
    changed = copy.deepcopy(value)
    changed["spec"]["n"] = 2
    value = track(value, changed, by("editor", minutes=1))
    assert owners(value) == {"m1": {".spec.atom"}, "editor": {".spec.n"}}
    with pytest.raises(ApplyConflict, match=r'conflict with "editor" using v1: \.spec\.n'):
        apply(value, obj(n=3, atom=["x"]), by("m1"))


def test_what_an_update_removes_nobody_has_any_more() -> None:
    value = created("m1", n=1, atom=["x"])
    changed = copy.deepcopy(value)
    del changed["spec"]["n"]
    assert owners(track(value, changed, by("editor"))) == {"m1": {".spec.atom"}}


def test_a_create_owns_its_fields_and_the_containers_of_them() -> None:
    value = track(None, obj(n=1, map=[{"k": "1"}]), by("creator"))
    (entry,) = value["metadata"]["managedFields"]
    assert entry["operation"] == "Update"
    assert entry["fieldsV1"] == {
        "f:spec": {".": {}, "f:n": {}, "f:map": {".": {}, 'k:{"k":"1"}': {".": {}, "f:k": {}}}}
    }


def test_an_object_that_nobody_tracked_gets_a_manager_at_its_first_apply() -> None:
    value = stored(obj(n=1))
    assert "managedFields" not in track(value, obj(n=2), by("editor"))["metadata"]
    with pytest.raises(ApplyConflict, match=r'conflict with "before-first-apply" using v1'):
        apply(value, obj(n=2), by("m1"))
    applied = apply(value, obj(n=1), by("m1"))
    assert owners(applied)["before-first-apply"] >= {".spec.n"}


def test_managers_can_be_reset_by_an_update_only() -> None:
    value = created("m1", n=1)
    emptied = copy.deepcopy(value)
    emptied["metadata"]["managedFields"] = []
    assert "managedFields" not in track(value, emptied, by("e"))["metadata"]
    broken = copy.deepcopy(value)
    broken["metadata"]["managedFields"] = [{"operation": "Dance", "apiVersion": "v1"}]
    assert owners(track(value, broken, by("e"))) == {"m1": {".spec.n"}}


def test_the_oldest_updaters_are_merged() -> None:
    value = stored(track(None, obj(n=0), by("u0")))
    for number in range(1, 13):
        changed = copy.deepcopy(value)
        changed["metadata"].setdefault("labels", {})[f"l{number}"] = "x"
        value = track(value, changed, by(f"u{number}", minutes=number))
    assert set(owners(value)) == {"ancient-changes"} | {f"u{number}" for number in range(4, 13)}
    assert {".spec.n", ".metadata.labels.l1", ".metadata.labels.l2"} <= owners(value)["ancient-changes"]


def test_fields_that_the_endpoint_does_not_set_are_not_owned() -> None:
    config = {**obj(n=1), "status": {"phase": "x"}}
    value = apply({"metadata": {}}, config, by("m1", ignored=(("f:status",),)))
    assert owners(value) == {"m1": {".spec.n"}}


def test_what_the_kind_does_not_have_or_has_twice_is_refused() -> None:
    with pytest.raises(NotTyped, match=r"\.spec\.nope: field not declared in schema"):
        apply({"metadata": {}}, obj(nope=1), by("m"))
    with pytest.raises(NotTyped, match="duplicate entries for key"):
        apply({"metadata": {}}, obj(map=[{"k": "1"}, {"k": "1"}]), by("m"))
    with pytest.raises(NotTyped, match="omits all key fields"):
        apply({"metadata": {}}, obj(map=[{"v": "1"}]), by("m"))


def test_kubectl_takes_over_what_it_applied_from_the_client_side() -> None:
    last = '{"apiVersion":"v1","kind":"K","metadata":{"name":"x"},"spec":{"n":1}}'
    value = obj(n=1)
    value["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    value = stored(track(None, value, by("kubectl-client-side-apply")))
    assert apply(value, obj(n=2), by("kubectl"))["spec"]["n"] == 2
    with pytest.raises(ApplyConflict):
        apply(value, obj(n=2), by("somebody"))


def test_applying_the_same_again_changes_not_even_the_time() -> None:
    value = created("m1", n=1)
    again = apply(value, obj(n=1), by("m1", minutes=5))
    assert keep_times(value, again) == value


def specs() -> st.SearchStrategy[dict[str, Any]]:
    text = st.sampled_from(["x", "y"])
    item = st.fixed_dictionaries({"k": st.sampled_from("abc")}, optional={"v": text, "w": text})
    return st.fixed_dictionaries(
        {},
        optional={
            "n": st.integers(1, 2),
            "atom": st.lists(text, min_size=1, max_size=2),
            "set": st.lists(st.sampled_from("abc"), unique=True, min_size=1, max_size=3),
            "map": st.lists(item, unique_by=lambda one: one["k"], min_size=1, max_size=3),
            "ref": st.fixed_dictionaries({"a": text}, optional={"b": text}),
        },
    )


WRITES = st.lists(st.tuples(st.sampled_from(["a", "b", "u"]), specs()), min_size=1, max_size=6)


@given(WRITES)
@settings(deadline=None)
def test_any_history_leaves_the_applied_values_and_an_owner_for_each_field(writes: list[tuple[str, Any]]) -> None:
    value: dict[str, Any] = {"metadata": {"uid": "u1", "name": "x"}, "spec": {}}
    value = track(None, value, by("start"))
    for minute, (manager, spec) in enumerate(writes):
        if manager == "u":
            value = track(value, {**value, "spec": spec}, by("u", minutes=minute))
            assert value["spec"] == spec
            continue
        value = apply(value, obj(**spec), by(manager, minutes=minute), force=True)
        drop_nulls(value, SCHEMA)
        for name, wanted in spec.items():
            if name in ("n", "atom", "ref") and wanted not in ([], {}):
                assert value["spec"][name] == wanted
            if name == "set":
                assert set(wanted) <= set(value.get("spec", {}).get("set", ()))
        again = apply(value, obj(**spec), by(manager, minutes=minute + 1), force=True)
        drop_nulls(again, SCHEMA)
        assert keep_times(value, again) == value, "applying twice is applying once"

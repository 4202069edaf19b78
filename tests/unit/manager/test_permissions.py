"""Permissions: declared by @rbac, named when missing."""

from __future__ import annotations

import pytest

from flyball import rbac
from flyball.cache import InformerCache, MissingPermission
from flyball.manager.permissions import Missing, Permission, recorded

pytestmark = pytest.mark.capability("C25")


def test_what_is_declared_is_recorded_and_the_code_unchanged() -> None:
    @rbac("apps", "deployments", "get", "list", "watch", "patch")
    @rbac("", ["pods", "pods/log"], "get", namespace="shop", names=["a"])
    def code() -> int:
        return 3

    assert code() == 3
    assert Permission("apps", ("deployments",), ("get", "list", "watch", "patch")) in recorded()
    assert Permission("", ("pods", "pods/log"), ("get",), "shop", ("a",)) in recorded()


@pytest.mark.parametrize(
    ("group", "resources", "verbs", "message"),
    [
        ("apps", "*", ["get"], "'\\*' is a wildcard; name what the code needs"),
        ("apps", "deployments", ["*"], "is a wildcard"),
        ("apps", "deployments", ["read"], "'read' is no verb of Kubernetes; there are approve,"),
        ("apps", "deployments", [], "name resources and verbs"),
    ],
)
def test_what_grants_too_much_or_nothing_is_refused(group: str, resources: str, verbs: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rbac(group, resources, *verbs)


class Cache:
    def __init__(self) -> None:
        self.missing: list[MissingPermission] = []

    def missing_permissions(self) -> list[MissingPermission]:
        return self.missing


def test_what_is_missing_is_named_once_and_again_after_it_was_granted(caplog: pytest.LogCaptureFixture) -> None:
    cache = Cache()
    missing = Missing(cache)  # type: ignore[arg-type]
    assert isinstance(InformerCache.missing_permissions, object)
    pods = MissingPermission("list", "", "pods", "x")
    cache.missing = [pods]
    assert missing.look() == [pods]
    missing.look()
    named = 'missing: list pods in namespace x; add @rbac("", "pods", "list", "watch")'
    assert [record.message for record in caplog.records] == [named]
    cache.missing = []
    assert missing.look() == []
    cache.missing = [pods]
    missing.look()
    assert len(caplog.records) == 2

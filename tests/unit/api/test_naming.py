"""Attributes and JSON keys, kinds and plurals."""

from __future__ import annotations

import pytest

from flyball.api.naming import json_name, plural_of, python_name


@pytest.mark.parametrize(
    ("attribute", "key"),
    [
        ("size", "size"),
        ("match_labels", "matchLabels"),
        ("cluster_ip", "clusterIP"),
        ("cluster_ips", "clusterIPs"),
        ("pod_cidrs", "podCIDRs"),
        ("non_resource_urls", "nonResourceURLs"),
        ("provider_id", "providerID"),
        ("from_", "from"),
        ("continue_", "continue"),
        ("v1", "v1"),
    ],
)
def test_both_ways(attribute: str, key: str) -> None:
    assert json_name(attribute) == key
    assert python_name(key) == attribute


def test_a_field_of_ones_own_follows_the_plain_rule() -> None:
    assert json_name("backup_url") == "backupUrl"
    assert json_name("my_ip") == "myIp"


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("MyOwnShell", "myownshells"),
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Box", "boxes"),
        ("Patch", "patches"),
    ],
)
def test_plurals(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural

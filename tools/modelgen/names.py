"""Names: from the JSON of the API to Python, and from API groups to folders."""

from __future__ import annotations

import keyword
import re

_PLURAL_ACRONYM = re.compile(r"([A-Z]{2,})s(?=[A-Z]|$)")
_ACRONYM_THEN_WORD = re.compile(r"([A-Z]+)([A-Z][a-z])")
_WORD_THEN_CAPITAL = re.compile(r"([a-z\d])([A-Z])")


def attribute(json_name: str) -> str:
    """The attribute for a JSON name.

    >>> [attribute(name) for name in ("clusterIP", "podIPs", "openAPIV3Schema", "from", "$ref", "x-a-b")]
    ['cluster_ip', 'pod_ips', 'open_apiv3_schema', 'from_', 'ref', 'x_a_b']
    """
    name = json_name.lstrip("$").replace("-", "_")
    name = _PLURAL_ACRONYM.sub(lambda found: found[1].capitalize() + "s", name)
    name = _ACRONYM_THEN_WORD.sub(r"\1_\2", name)
    name = _WORD_THEN_CAPITAL.sub(r"\1_\2", name).lower()
    return name + "_" if keyword.iskeyword(name) else name


def folder(group: str) -> str:
    """The folder of an API group: its first label.

    >>> folder(""), folder("apps"), folder("rbac.authorization.k8s.io")
    ('core', 'apps', 'rbac')
    """
    return group.partition(".")[0] or "core"

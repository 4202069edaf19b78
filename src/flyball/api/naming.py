"""How Python names become Kubernetes names: attributes to JSON keys, kinds to plurals.

The rule is snake_case to camelCase. Kubernetes itself breaks it for some old fields (`clusterIP`, `podCIDRs`); they are
listed by their whole name, so that no rule about "IP" or "ID" surprises anybody's own field. A Python keyword is
written with an underscore behind it (`from_`, `continue_`); the underscore is not part of the JSON name.
"""

from __future__ import annotations

import re

__all__ = ["json_name", "plural_of", "python_name"]

_UNUSUAL = [
    "bootID",
    "chapAuthDiscovery",
    "clientCIDR",
    "clusterIP",
    "clusterIPs",
    "containerID",
    "diskURI",
    "externalID",
    "externalIPs",
    "hostIP",
    "hostIPC",
    "hostIPs",
    "hostPID",
    "imageID",
    "loadBalancerIP",
    "machineID",
    "nodeID",
    "nonResourceURLs",
    "openAPIV3Schema",
    "pdID",
    "podCIDR",
    "podCIDRs",
    "podIP",
    "podIPs",
    "providerID",
    "serverAddressByClientCIDRs",
    "setHostnameAsFQDN",
    "systemUUID",
    "targetWWNs",
    "volumeID",
    "insecureSkipTLSVerify",
    "storageID",
    "deviceID",
    "clientID",
    "userID",
    "groupID",
]

_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z](?!$))|(?<=[A-Z])(?=[A-Z][a-z]{2,})")


def python_name(name: str) -> str:
    """The attribute for a JSON key: `clusterIPs` -> `cluster_ips`, `from` -> `from_`."""
    import keyword

    words = _JOINT.sub("_", name.replace("-", "_")).lower().lstrip("$")
    return f"{words}_" if keyword.iskeyword(words) else words


_EXCEPTIONS = {python_name(name): name for name in _UNUSUAL}


def json_name(attribute: str) -> str:
    """The JSON key for an attribute: `match_labels` -> `matchLabels`, `pod_ip` -> `podIP`, `from_` -> `from`."""
    unusual = _EXCEPTIONS.get(attribute)
    if unusual is not None:
        return unusual
    head, *rest = attribute.rstrip("_").split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def plural_of(kind: str) -> str:
    """The usual plural of a kind, in lower case: `Policy` -> `policies`, `Ingress` -> `ingresses`."""
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"

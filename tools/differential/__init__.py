"""The differential runner: the same requests to two API servers, and their answers side by side.

A case is a list of requests, written as YAML in families (`tests/differential/cases`). `make record` plays all of
them against a real kube-apiserver and keeps the masked answers (`tests/differential/golden`); tests play them against
another server and compare. A golden answer comes from a real server, never from our own output.

Promises: a case leaves nothing behind that another case could see (a namespace and an API group of its own); an answer
is recorded whole (status, content type, chosen headers, body), and only what differs from run to run is masked.

A story is a case of another kind: it plays scheduler and kubelet, and tells what the controllers of a cluster make of
workloads. Its golden answers come from a real kube-controller-manager.

To read: cases (what a case is), families (short ways to write them), play, target (HTTP), masks, golden, report.
For stories: stories (start there), pods (what a kubelet would write), scenes (what is told), worlds (where).
"""

"""Reaching an API server: configuration, credentials, transport, verbs, errors.

    async with Client(field_manager="demo") as client:          # where kubectl would go
        pod = await client.get(Pod, "web-0", namespace="shop")
        pods = await client.list(Pod, namespace="shop", labels={"app": "web"})
        await client.apply(Deployment.new("web", namespace="shop", spec=...))

What it promises.

- **One door.** The same verbs take a class (`Pod`), a kind by its names (`dynamic("apps/v1", "Deployment")`), only the
  metadata of either (`metadata_of(Pod)`), or their bytes (`raw_of(Pod)`); the type of the answer follows.
- **Nothing is lost.** What a class does not know survives `update` and `patch`; `apply` sends only what the author set;
  what would drop data is refused before it is sent. A list is of one state, a watch leaves nothing out.
- **Nothing is hidden.** The server's warnings reach the log or a callback; every refusal is an error with the whole
  Status, and says what was being done to which object.
- **Answers are yours.** Every object handed out is decoded for the caller; changing it harms nobody.

Reading order: `kinds` (what may be asked for), `client` (the verbs), `session` (the way of a request), `transport` and
`http_transport` (what carries it), `retry` and `interceptors` (what stands between); then `listing`, `watch`, `logs`,
`processes` and `forwarding`, `writes` and `patches`, `discovery`; for where and as whom: `config`, `kubeconfig`,
`credentials`, `tls`.

It does not cache, and does not reconnect a watch: that is the next room's work. `flyball.sync` is the same for programs
without an event loop.
"""

from __future__ import annotations

from flyball.client.client import Client
from flyball.client.config import ClusterConfig, in_cluster_config, load_config
from flyball.client.discovery import Discovery, ServedKind
from flyball.client.forwarding import ForwardedStream, LocalPort, PortForward
from flyball.client.http_transport import HttpTransport
from flyball.client.interceptors import RateLimit
from flyball.client.kinds import ALL_NAMESPACES, Kind, Ref, dynamic, metadata_of, raw_of, ref
from flyball.client.listing import Listing, ListResult
from flyball.client.logs import Logs
from flyball.client.patches import JsonPatch, MergePatch, Patch, StrategicPatch
from flyball.client.processes import Exec, ExecResult, Output, Process
from flyball.client.refusals import RefusedRequest, UnknownKind, UnregisteredKind
from flyball.client.retry import Retry, RetryPolicy
from flyball.client.server_warnings import ServerWarning
from flyball.client.subresources import ScaleState, Token
from flyball.client.transport import HttpRequest, HttpResponse, Interceptor, Send, Transport, Upgraded
from flyball.client.watch import Watch, WatchEvent

__all__ = [
    "ALL_NAMESPACES",
    "Client",
    "ClusterConfig",
    "Discovery",
    "Exec",
    "ExecResult",
    "ForwardedStream",
    "HttpRequest",
    "HttpResponse",
    "HttpTransport",
    "Interceptor",
    "JsonPatch",
    "Kind",
    "ListResult",
    "Listing",
    "LocalPort",
    "Logs",
    "MergePatch",
    "Output",
    "Patch",
    "PortForward",
    "Process",
    "RateLimit",
    "Ref",
    "RefusedRequest",
    "Retry",
    "RetryPolicy",
    "ScaleState",
    "Send",
    "ServedKind",
    "ServerWarning",
    "StrategicPatch",
    "Token",
    "Transport",
    "UnknownKind",
    "UnregisteredKind",
    "Upgraded",
    "Watch",
    "WatchEvent",
    "dynamic",
    "in_cluster_config",
    "load_config",
    "metadata_of",
    "raw_of",
    "ref",
]

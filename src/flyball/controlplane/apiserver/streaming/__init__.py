"""What a client has of the processes of a Pod: their logs, commands beside them, their own streams, their ports.

The server runs nothing itself. It judges a request as upstream does (`parameters`, `places`) and turns to the `Kubelet`
of the Pod's node (`flyball.controlplane.apiserver.kubelets`):

    parameters      the query of a request, read as Go reads it
    places          the Pod, the container, the kubelet; or why there is none
    logs            GET pods/NAME/log
    handshake       whether a request becomes a WebSocket, or SPDY
    commands        exec and attach
    old_commands    the same for clients that speak SPDY
    forwarding      port-forward
    sessions        what is open, and how it ends with the server

Where the client goes, the kubelet's task is cancelled; where it is slow, the kubelet waits; where the server stops,
everything ends cleanly.
"""

from __future__ import annotations

from flyball.controlplane.apiserver.streaming.commands import attach, execute
from flyball.controlplane.apiserver.streaming.forwarding import forward
from flyball.controlplane.apiserver.streaming.logs import read_log
from flyball.controlplane.apiserver.streaming.sessions import Sessions

__all__ = ["Sessions", "attach", "execute", "forward", "read_log"]

"""`make demo`: what Flyball does, told in a terminal in a few seconds.

A cluster in the box whose Pods are processes of this machine, and two operators on it: `my_own_shell.py` beside this
file, and SimpleJob of `operators/`, which was drawn before it was written. It ends by itself; with KEEP=1 the cluster
stays for kubectl until Ctrl-C. Nothing is left behind.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from my_own_shell import MyOwnShell, MyOwnShellSpec, reconcile
from simplejob.api import SimpleJob, SimpleJobSpec
from simplejob.controller import simplejob

from flyball.api import Resource
from flyball.client import Client, HttpRequest
from flyball.errors import FlyballError, NotFound
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.batch.v1 import Job
from flyball.k8s.core.v1 import Pod
from flyball.testing import Cluster, eventually

PATIENCE = 60.0

STUBBORN = """\
case "$HOSTNAME" in
  *-1-*) echo "the coffee machine is not heated up yet"; exit 7 ;;
esac
echo "coffee for $(id -un), brewed by process $$"
"""
"""Fails as attempt 1, whose number is in the name of its Pod, and succeeds after that."""


def main() -> None:
    """Show it, and end."""
    try:
        asyncio.run(show(keep=os.environ.get("KEEP", "") not in ("", "0")))
    except KeyboardInterrupt:
        sys.exit(130)
    except FlyballError as error:
        sys.exit(f"demo: {error}")


async def show(*, keep: bool) -> None:
    """Start the cluster and both operators, and tell what happens."""
    began = time.perf_counter()
    cluster = Cluster(workloads=True, pods="process")
    async with cluster:
        say(f"A Kubernetes API is here after {time.perf_counter() - began:.1f} s; Pods are processes of this machine.")
        async with cluster.running(reconcile, simplejob):
            client = cluster.client
            await one_file(client, cluster)
            await from_a_diagram(client, cluster)
            if not keep:
                await all_of_it_goes(client)
            say(f"\nAll of that took {time.perf_counter() - began:.1f} s, with nothing but Python.")
            if keep:
                await stay(cluster)
    say(NEXT)


async def one_file(client: Client, cluster: Cluster) -> None:
    """A Deployment that is kept as it shall be."""
    heading("An operator in one file: examples/my_own_shell.py")
    say("    The MyOwnShell demo shall have 3 shells.")
    await client.create(MyOwnShell.new("demo", spec=MyOwnShellSpec(size=3)))
    await eventually(lambda: client.get(MyOwnShell, "demo"), lambda one: one.status.ready == 3, timeout=PATIENCE)
    await table(cluster, "/apis/apps/v1/namespaces/default/deployments")
    await table(cluster, "/api/v1/namespaces/default/pods", "app=demo")
    say("\n    Somebody scales the Deployment to 7, behind the operator's back ...")
    began = time.perf_counter()
    await client.scale(Deployment, "demo", replicas=7)
    await eventually(lambda: client.get(Deployment, "demo"), lambda one: one.spec.replicas == 3, timeout=PATIENCE)
    say(f"    ... and {1000 * (time.perf_counter() - began):.0f} ms later it says 3 again.")


async def from_a_diagram(client: Client, cluster: Cluster) -> None:
    """A job that fails, is tried again, and succeeds."""
    heading("An operator from a state diagram: operators/simplejob")
    say("    The SimpleJob coffee runs a command that fails at first.")
    spec = SimpleJobSpec(command=STUBBORN, image="busybox:latest", max_retries=3, retry_backoff_seconds=1)
    await client.create(SimpleJob.new("coffee", spec=spec))
    seen: list[str] = []

    def told(job: SimpleJob) -> bool:
        phase = job.status.phase
        if phase is not None and seen[-1:] != [phase]:
            seen.append(phase)
            say(f"    {phase:10} {job.status.message or ''}".rstrip())
        return phase in ("Completed", "Failed")

    await eventually(lambda: client.get(SimpleJob, "coffee"), told, timeout=PATIENCE)
    await table(cluster, "/apis/jobs.example.com/v1alpha1/namespaces/default/simplejobs")
    say("\n    What the attempts wrote:")
    pods = await client.list(Pod, labels="app.kubernetes.io/name=simplejob")
    for pod in sorted(pods, key=lambda one: one.metadata.name):
        say(f"    {pod.metadata.name}: {(await client.logs(pod)).strip()}")


async def all_of_it_goes(client: Client) -> None:
    """Owners are deleted; what they own goes with them."""
    heading("Deletion")
    await client.delete(MyOwnShell, "demo")
    await client.delete(SimpleJob, "coffee")
    await eventually(lambda: gone(client, (Deployment, Job, Pod)), timeout=PATIENCE)
    say("    Two objects were deleted; their Deployment, Jobs, Pods and processes went with them.")


async def gone(client: Client, kinds: Sequence[type[Resource]]) -> bool:
    """Tell whether there is nothing left of these kinds."""
    for kind in kinds:
        if await client.list(kind):
            return False
    with suppress(NotFound):
        await client.get(MyOwnShell, "demo")
        return False
    return True


async def stay(cluster: Cluster) -> None:
    """Keep the cluster and the operators until Ctrl-C."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    say("\nThe cluster stays, with both operators at work. In another terminal:\n")
    say(f"    export KUBECONFIG={cluster.kubeconfig}")
    say("    kubectl get myownshells,simplejobs,deployments,jobs,pods\n\nCtrl-C ends it.")
    await stopped.wait()


# How it is told

NEXT = """
Next:
    make demo KEEP=1                   the same again, and the cluster stays
    flyball up --pods=process          a cluster like this one, for kubectl
    docs/tutorials/first-operator.md   your first operator
    docs/tutorials/simplejob.md        an operator from a diagram"""


def say(text: str) -> None:
    """Print it at once."""
    print(text, flush=True)


def heading(text: str) -> None:
    """Begin the next part."""
    say(f"\n{text}\n")


async def table(cluster: Cluster, path: str, labels: str = "") -> None:
    """Print what kubectl would print of these objects."""
    import msgspec

    query = (("labelSelector", labels),) if labels else ()
    asked = HttpRequest("GET", path, query, {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    shown = msgspec.json.decode(await (await cluster.transport.send(asked)).read())
    places = [place for place, column in enumerate(shown["columnDefinitions"]) if not column["priority"]]
    rows = [[shown["columnDefinitions"][place]["name"].upper() for place in places]]
    for row in shown["rows"]:
        rows.append(["" if row["cells"][place] is None else str(row["cells"][place]) for place in places])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    say("")
    for row in rows:
        say("    " + "   ".join(map(str.ljust, row, widths)).rstrip())


if __name__ == "__main__":
    main()

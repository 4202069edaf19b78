"""The reconciler."""

import os
from datetime import datetime, timedelta

from flyball import Context, Controller, Result, Watches, controller
from flyball.client import MergePatch
from flyball.controller import (
    ChildTerminating,
    Ensured,
    NameConflict,
    TooOften,
    condition_changed,
    deletion_changed,
    ensure,
    expect_valid,
)
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import ConfigMap, Pod

from myownshell.api import GROUP, MyOwnShell
from myownshell.children import APP, OWNER, deployment_of, selector_of, settings_of
from myownshell.lifetime import Lifetime, lifetime_of, time_of
from myownshell.report import is_ready, report, report_closing

FINALIZER = f"myownshell.{GROUP}/finalizer"
DRAINED_SINCE = f"{GROUP}/drained-since"
DRAIN_TIME = timedelta(seconds=30)


class Shells:
    """Keeps shells open, and closes them before their MyOwnShell goes."""

    def __init__(self, *, restricted_pods: bool = False) -> None:
        """`restricted_pods`: they meet the restricted profile of pod security."""
        self.restricted_pods = restricted_pods
        self.repairs = TooOften(5, timedelta(minutes=5))

    async def reconcile(self, shell: MyOwnShell, ctx: Context) -> None:
        """One change of the world at most; its event brings the next pass."""
        expect_valid(shell)
        notebook = next(iter(await ctx.owned(ConfigMap)), None)
        lifetime = lifetime_of(shell, notebook, ctx.now())
        deployment = deployment_of(shell, 0 if lifetime.over else shell.spec.size, restricted=self.restricted_pods)
        settings = settings_of(shell, lifetime.notes)
        troubles: dict[str, NameConflict | ChildTerminating] = {}
        for child in (settings, deployment) if lifetime.renewed else (deployment, settings):
            try:
                done = await ensure(ctx, child)
            except (NameConflict, ChildTerminating) as trouble:
                troubles[child.kind] = trouble
                continue
            if done.changed:
                self._tell(shell, ctx, done, lifetime)
                break
        contested_until = self.repairs.until(shell.metadata.uid, ctx.now())
        report(shell, *await self._found(shell, ctx), lifetime, contested=contested_until is not None)
        ctx.measure("myownshell_shells_ready", shell.status.ready_replicas)
        if isinstance(conflict := troubles.get(deployment.kind), NameConflict):
            shell.status.set_condition("Available", False, reason="NameConflict", message=str(conflict))
        for moment in (None if lifetime.over else lifetime.end, contested_until):
            if moment is not None:
                ctx.requeue(at=moment)
        if troubles:
            raise next(iter(troubles.values()))

    async def drain(self, shell: MyOwnShell, ctx: Context) -> Result | None:
        """Close the shells and wait for that; nothing is made any more."""
        deadline = await self._close(shell, ctx) + DRAIN_TIME
        deployment, pods = await self._found(shell, ctx)
        report_closing(shell, deployment, pods)
        ctx.measure("myownshell_shells_ready", shell.status.ready_replicas)
        open_shells = sorted(pod.metadata.name for pod in pods if is_ready(pod))
        if not open_shells:
            ctx.record("Normal", "Drained", "all shells are closed")
        elif ctx.now() < deadline:
            return Result.at(deadline)
        else:
            late = f"after {DRAIN_TIME.seconds} s these shells are still open: {', '.join(open_shells)}"
            ctx.record("Warning", "DrainTimedOut", late)
        return None

    async def _close(self, shell: MyOwnShell, ctx: Context) -> datetime:
        """Scale to 0; since when that is so."""
        for deployment in await ctx.owned(Deployment):
            noted = time_of(deployment.metadata.annotations.get(DRAINED_SINCE))
            since = noted or ctx.now()
            if deployment.spec.replicas or noted is None:
                note = {"annotations": {DRAINED_SINCE: since.isoformat()}}
                await ctx.patch(deployment, MergePatch({"metadata": note, "spec": {"replicas": 0}}))
            return since
        return shell.metadata.deletion_timestamp or ctx.now()

    def _tell(self, shell: MyOwnShell, ctx: Context, done: Ensured[Deployment | ConfigMap], lifetime: Lifetime) -> None:
        """An event about what was done, and the numbers."""
        kind = done.object.kind
        if done.made:
            ctx.record("Normal", f"{kind}Created", f"created {done}")
        elif done.drifted:
            ctx.record("Normal", "DriftRepaired", str(done))
            for group in sorted({_group_of(field) for field in done.fields}):
                ctx.count("myownshell_drift_repairs_total", object=kind, field_group=group)
            if "spec.replicas" in done.fields:
                self.repairs.note(shell.metadata.uid, ctx.now())
        elif isinstance(done.object, Deployment) and isinstance(done.before, Deployment):
            before, after = done.before.spec.replicas, done.object.spec.replicas
            if lifetime.over and before:
                ctx.record("Normal", "Expired", f"{before} shells were closed after {shell.spec.lifetime_seconds} s")
                ctx.count("myownshell_expired_total")
            elif before != after:
                ctx.record("Normal", "Scaled", f"from {before} to {after}")

    async def _found(self, shell: MyOwnShell, ctx: Context) -> tuple[Deployment | None, list[Pod]]:
        deployment = next(iter(await ctx.owned(Deployment)), None)
        return deployment, await ctx.list(Pod, labels=selector_of(shell))


def _group_of(field: str) -> str:
    """`replicas` of `spec.replicas`, `data` of `data.image`: there are few of them."""
    first, *others = field.split(".")
    return others[0].partition("[")[0] if first in ("metadata", "spec") else first


def _shell_of(pod: Pod) -> list[str]:
    owner = pod.metadata.labels.get(OWNER)
    return [owner] if owner else []


def operator(*, restricted_pods: bool = False, finalizer: bool = True) -> Controller[MyOwnShell]:
    """The controller; without `finalizer` a MyOwnShell goes at once, and its children are left to Kubernetes."""
    shells = Shells(restricted_pods=restricted_pods)
    pods = Watches(Pod, _shell_of, labels=APP, predicates=[condition_changed("Ready") | deletion_changed])
    made = controller(
        MyOwnShell,
        owns=[Deployment, ConfigMap],
        watches=[pods],
        conditions=["Available", "Progressing", "Degraded"],
        events_on=["Degraded"],
        max_concurrent=4,
    )(shells)
    if finalizer:
        made.finalize(FINALIZER)(shells.drain)
    return made


def _is_set(name: str) -> bool:
    return os.environ.get(f"MYOWNSHELL_{name}", "").lower() in ("1", "true", "yes", "on")


myownshell = operator(restricted_pods=_is_set("RESTRICTED_PODS"), finalizer=not _is_set("NO_FINALIZER"))

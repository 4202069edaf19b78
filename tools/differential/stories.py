"""Stories: what controllers make of workloads, while the story plays the scheduler and the kubelet.

A story is a case of the way `story`. After each step the world comes to rest (nothing that the story looks at has
changed for a while), and what has changed is recorded (`scenes`). So only states in which a controller stays are told,
and never one through which it hurries. The steps:

    make: {kind: Deployment, ...}             create an object; or the name of one of the family's `bases` (and `with`)
    change: deployments/web, with: {...}      a merge patch; `type: strategic` or `json`, `sub: status` or `scale`
    delete: pods/first                        `policy: Foreground|Orphan|Background`, `grace: 0`
    pods: ready                               what happens to Pods on their nodes, see below
    pass: 10                                  seconds go by

What may happen to Pods: `bound` (they get a node), `running` (but not ready), `ready`, `succeeded`, `failed` (`code`),
`deleted` (somebody wants it to go), `gone` (the kubelet has ended it; deleted for good), `status` (a merge patch of the
status, in `with`). It happens to all whom it may concern; `count` takes so many of them (it has to be all the same
which), `where` are labels, `image` is that of the first container, `marked` chooses those with a mark, `are` those in a
state (pending, running, ready, succeeded, failed, deleting). `mark` writes a mark onto each of them, `metadata`
anything; `node` says on which node.

Names may be written as they are told (`replicasets/web-H1`). Every step may be `quiet` (nothing is recorded after it,
what it changes is told with the next) or `unsaid` (its Events are not told: how often a controller acts depends on how
quick the others are), `at_once` (the next step follows without a rest) and have
`until: {deployments/web: {status.readyReplicas: 3}}`, without which the rest does not begin. Choose times generously: a
real second may be a slow one.

Promises: a story is recorded twice, and kept only when both recordings are equal. On the embedded cluster it runs on a
clock that is turned by hand, and waits for nothing real.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from http.client import HTTPException
from typing import Any, Final, Protocol

from tools.differential import golden
from tools.differential.cases import Case, CaseError, Step
from tools.differential.play import Player, Record, at
from tools.differential.pods import choose, status_of
from tools.differential.scenes import Narrator, resources
from tools.differential.worlds import World

__all__ = ["REST_SECONDS", "Enter", "play_stories", "play_story", "twice"]

KINDS: Final = {
    "ConfigMap": ("v1", "configmaps"),
    "ControllerRevision": ("apps/v1", "controllerrevisions"),
    "CronJob": ("batch/v1", "cronjobs"),
    "Deployment": ("apps/v1", "deployments"),
    "EndpointSlice": ("discovery.k8s.io/v1", "endpointslices"),
    "Endpoints": ("v1", "endpoints"),
    "Job": ("batch/v1", "jobs"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "Pod": ("v1", "pods"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "ReplicationController": ("v1", "replicationcontrollers"),
    "ResourceQuota": ("v1", "resourcequotas"),
    "Secret": ("v1", "secrets"),
    "Service": ("v1", "services"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "StatefulSet": ("apps/v1", "statefulsets"),
}
REST_SECONDS: Final = 1.5
LOOK_SECONDS: Final = 0.15
PATIENCE_SECONDS: Final = 30.0
PLAYERS: Final = 8
NOT_IN_TITLES: Final = ("with", "metadata", "until", "body", "unsaid")
NODES: Final[dict[str, dict[str, str]]] = {
    "node-1": {},
    "node-2": {},
    "node-3": {"topology.kubernetes.io/zone": "zone-3"},
}
"""The nodes that there are, and their labels; nobody runs there but the story."""
EVENTS: Final = "$CORE/events"
MERGE: Final = "application/merge-patch+json"


class Enter(Protocol):
    """Opens a world for one story."""

    def __call__(self) -> AbstractContextManager[World]: ...


class _Story(Player):
    """One story in one world."""

    def __init__(self, case: Case, world: World, rest: float) -> None:
        super().__init__(case, world.target)
        self.rest = rest
        self.world = world
        self.narrator = Narrator(case.namespace, case.shows, in_order=not case.refuses_in_any_order)
        self._pods_played = 0

    def prepare(self) -> None:
        """A namespace, with the account that Pods run as, and nodes."""
        super().prepare()
        for name, labels in NODES.items():
            node = json.dumps({"metadata": {"name": name, "labels": labels}}).encode()
            answer = self.target.send("POST", "/api/v1/nodes", {"Content-Type": "application/json"}, node)
            if answer.status not in (201, 409):
                raise CaseError(f"{self.case.id}: node {name}: {answer.status} {answer.body.decode()[:600]}")
        account = f"/api/v1/namespaces/{self.case.namespace}/serviceaccounts/default"
        self._until(lambda: self.target.send("GET", account, {}, None).status == 200, "the account of Pods")

    def clean_up(self) -> None:
        """What happens in the namespace from now on concerns nobody."""
        super().clean_up()
        self.target.send("DELETE", f"/api/v1/namespaces/{self.case.namespace}", {}, None)

    def do(self, step: Step) -> None:
        """One step, the rest after it, and what has changed."""
        self._steps[step.kind](self, step)
        if step.options.get("at_once"):
            return
        for place, wanted in step.options.get("until", {}).items():
            path = self._place(place)
            self._until(lambda path=path, wanted=wanted: self._holds(path, wanted), f"{wanted} of {path}")  # type: ignore[misc]
        self._rest()
        found = {name: self._list(path) for name, path in self._looks()}
        self.narrator.learn(found)
        if step.options.get("unsaid"):
            self.narrator.hear(self._list(EVENTS))
        if not step.options.get("quiet"):
            self.records.append({"step": _title(step)} | self.narrator.tell(found, self._list(EVENTS)))

    # -- steps

    def _make(self, step: Step) -> None:
        body = self.expand(step.options["body"])
        version, plural = KINDS[body["kind"]]
        path = self.text(resources([plural])[plural])
        self._send("POST", path, {"apiVersion": version} | body)

    def _change(self, step: Step) -> None:
        sub = f"/{step.options['sub']}" if "sub" in step.options else ""
        media = step.content_type or MERGE
        self._send("PATCH", self._place(step.path) + sub, self.expand(step.options["with"]), media)

    def _delete(self, step: Step) -> None:
        options: dict[str, Any] = {}
        if "policy" in step.options:
            options["propagationPolicy"] = step.options["policy"]
        if "grace" in step.options:
            options["gracePeriodSeconds"] = step.options["grace"]
        self._send("DELETE", self._place(step.path), options)

    def _pass(self, step: Step) -> None:
        self.world.pass_time(float(step.path))

    def _pods(self, step: Step) -> None:
        chosen = choose(self._list("$CORE/pods"), step.path, step.options)
        if not chosen or len(chosen) < step.options.get("count", 0):
            raise CaseError(f"{self.case.id}: {_title(step)}: there are only {len(chosen)} such Pods")
        for pod in chosen:
            self._happens(pod, step)

    def _happens(self, pod: dict[str, Any], step: Step) -> None:
        path, what = f"{self.text('$CORE/pods')}/{pod['metadata']['name']}", step.path
        if "mark" in step.options:
            self._send("PATCH", path, {"metadata": {"annotations": {"mark": step.options["mark"]}}}, MERGE)
        if "metadata" in step.options:
            self._send("PATCH", path, {"metadata": self.expand(step.options["metadata"])}, MERGE)
        if what in ("gone", "deleted"):
            self._send("DELETE", path, {"gracePeriodSeconds": 0} if what == "gone" else {})
            return
        if what == "status":
            self._send("PATCH", f"{path}/status", {"status": self.expand(step.options["with"])}, MERGE)
            return
        if "nodeName" not in pod["spec"]:
            where = {"kind": "Node", "name": step.options.get("node", "node-1")}
            self._send("POST", f"{path}/binding", {"metadata": {"name": pod["metadata"]["name"]}, "target": where})
        if what != "bound":
            self._pods_played += 1
            code = step.options.get("code", int(what == "failed"))
            status = status_of(pod, what, self.world.now(), self._pods_played, code)
            self._send("PATCH", f"{path}/status", {"status": status}, MERGE)

    _steps: Final[dict[str, Callable[[_Story, Step], None]]] = {
        "make": _make,
        "change": _change,
        "delete": _delete,
        "pods": _pods,
        "pass": _pass,
    }

    # -- the server

    def _send(self, method: str, path: str, body: Any, media: str = "application/json") -> None:
        answer = self.target.send(method, path, {"Content-Type": media}, json.dumps(body).encode())
        if answer.status >= 300:
            raise CaseError(f"{self.case.id}: {method} {path}: {answer.status} {answer.body.decode()[:600]}")

    def _place(self, place: str) -> str:
        """The path of `resource/name`."""
        plural, _, name = str(self.text(place)).partition("/")
        return f"{self.text(resources([plural])[plural])}/{self.narrator.real_name(name)}"

    def _looks(self) -> Iterable[tuple[str, str]]:
        return resources(self.case.looks).items()

    def _list(self, path: str) -> list[dict[str, Any]]:
        answer = self.target.send("GET", self.text(path), {}, None)
        if answer.status != 200:
            raise CaseError(f"{self.case.id}: GET {path}: {answer.status} {answer.body.decode()[:600]}")
        items: list[dict[str, Any]] = json.loads(answer.body)["items"]
        return items

    # -- rest

    def _rest(self) -> None:
        """Wait until nothing has changed for a while."""
        since, waited, before = 0.0, 0.0, ""
        while since < self.rest:
            self.world.pass_time(LOOK_SECONDS)
            waited += LOOK_SECONDS
            now = self._versions()
            since, before = (since + LOOK_SECONDS, now) if now == before else (0.0, now)
            if waited > PATIENCE_SECONDS:
                raise CaseError(f"{self.case.id}: the world does not come to rest")

    def _versions(self) -> str:
        known = self.world.version()
        if known is not None:
            return known
        paths = [*(path for _, path in self._looks()), EVENTS]
        return " ".join(str(each["metadata"]["resourceVersion"]) for path in paths for each in self._list(path))

    def _holds(self, path: str, wanted: dict[str, Any]) -> bool:
        answer = self.target.send("GET", path, {}, None)
        body = json.loads(answer.body) if answer.status == 200 else {}
        return all(at(body, where) == value for where, value in wanted.items())

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        waited = 0.0
        while not holds():
            if waited > PATIENCE_SECONDS:
                raise CaseError(f"{self.case.id}: waited in vain for {what}")
            self.world.pass_time(LOOK_SECONDS)
            waited += LOOK_SECONDS


def _title(step: Step) -> str:
    if step.kind == "make":
        body = step.options["body"]
        return f"make {body['kind']} {body['metadata'].get('name', '')}"
    chosen = {key: value for key, value in step.options.items() if key not in NOT_IN_TITLES}
    return " ".join([step.kind, step.path, *(f"{key}={json.dumps(value)}" for key, value in chosen.items())])


def play_story(case: Case, enter: Enter, rest: float = REST_SECONDS) -> list[Record] | CaseError:
    """What is told of a story, when nothing changes for `rest` seconds; a CaseError when it cannot be played."""
    try:
        with enter() as world:
            story = _Story(case, world, rest)
            story.prepare()
            try:
                for step in case.steps:
                    story.do(step)
            finally:
                story.clean_up()
            return story.records
    except CaseError as error:
        return error
    except (OSError, HTTPException, LookupError, TypeError, ValueError) as error:
        return CaseError(f"{case.id}: {type(error).__name__}: {error}")


def play_stories(
    cases: list[Case], enter: Enter, players: int = PLAYERS, rest: float = REST_SECONDS
) -> list[list[Record] | CaseError]:
    """All stories, some at a time: a real controller manager is waited for most of the time."""
    with ThreadPoolExecutor(players) as pool:
        return list(pool.map(lambda case: play_story(case, enter, rest), cases))


def twice(cases: list[Case], enter: Enter) -> list[list[Record] | CaseError]:
    """All stories, told twice; a CaseError where that gave two stories."""
    again = [dataclasses.replace(case, family=f"{case.family}-2") for case in cases]
    told = play_stories([*cases, *again], enter)
    return [_agreed(case, *both) for case, both in zip(cases, zip(told, told[len(cases) :], strict=False), strict=True)]


def _agreed(case: Case, one: list[Record] | CaseError, two: list[Record] | CaseError) -> list[Record] | CaseError:
    for each in (one, two):
        if isinstance(each, CaseError):
            return each
    lines = golden.differences(one, two)
    return CaseError(f"{case.id}: two recordings differ: {'; '.join(lines[:3])}") if lines else one

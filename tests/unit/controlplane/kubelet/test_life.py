"""How a simulated Pod lives when nobody says otherwise, step by step and without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from flyball.controlplane.kubelet.simulated.life import Moments, back_off, next_step
from flyball.controlplane.kubelet.simulated.state import SimulatedPod
from flyball.controlplane.kubelet.simulated.wishes import PREFIX, Wishes

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
Json = dict[str, Any]


class Told:
    """A Pod that is played; `steps` are the times and phases of what happened."""

    def __init__(self, policy: str = "Always", annotations: Json | None = None, **spec: Any) -> None:
        marks = {PREFIX + name.replace("_", "-"): text for name, text in (annotations or {}).items()}
        self.pod: Json = {
            "metadata": {"name": "p", "namespace": "default", "uid": "00af-1", "annotations": marks, "generation": 1},
            "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": policy, **spec},
        }
        self.now = NOON
        self.steps: list[tuple[float, str]] = []
        self.said: list[str] = []
        self.gone = False
        self.moments: Moments = {}

    def play(self, seconds: float = 1e9, steps: int = 50) -> Told:
        """Let happen what is due within this time."""
        until = self.now + timedelta(seconds=min(seconds, 1e8))
        for _ in range(steps):
            pod = SimulatedPod(self.pod, self.now)
            step = next_step(pod, Wishes(self.pod, 1.0), self.moments, 1.0)
            if step is None or step.due > until or self.gone:
                break
            self.now = max(self.now, step.due)
            pod = SimulatedPod(self.pod, self.now)
            step.act(pod)
            self.pod["status"] = pod.conclusion()
            self.said += [one.reason for one in pod.said]
            self.gone = pod.deleted
            self.steps.append(((self.now - NOON).total_seconds(), self.phase))
        else:
            return self
        self.now = until if seconds < 1e9 else self.now
        return self

    @property
    def status(self) -> Json:
        return self.pod["status"]

    @property
    def phase(self) -> str:
        return self.status["phase"]

    def container(self, name: str = "c") -> Json:
        entries = self.status["containerStatuses"] + self.status.get("initContainerStatuses", [])
        return next(one for one in entries if one["name"] == name)

    def condition(self, type_: str) -> tuple[str, str | None]:
        found = next(one for one in self.status["conditions"] if one["type"] == type_)
        return found["status"], found.get("reason")


def test_a_pod_that_runs_for_ever_is_running_and_ready_at_once() -> None:
    told = Told().play()
    assert told.steps == [(0, "Running")]
    assert told.condition("Ready") == ("True", None)
    assert told.container()["ready"]
    assert told.status["podIP"] == "10.244.0.176"
    assert told.said == ["Pulled", "Created", "Started"]


@pytest.mark.parametrize(
    ("policy", "code", "phase", "reason"),
    [
        ("Never", "0", "Succeeded", "Completed"),
        ("Never", "3", "Failed", "Error"),
        ("OnFailure", "0", "Succeeded", "Completed"),
    ],
)
def test_a_pod_that_is_to_end_ends_after_a_second(policy: str, code: str, phase: str, reason: str) -> None:
    told = Told(policy, {"exit_code": code}).play()
    assert told.steps == [(0, "Running"), (1, phase)]
    ended = told.container()["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (int(code), reason)
    assert told.condition("Ready") == ("False", "PodCompleted" if phase == "Succeeded" else "PodFailed")
    assert told.condition("Initialized") == ("True", "PodCompleted" if phase == "Succeeded" else None)


def test_what_crashes_is_started_again_after_the_pauses_of_a_kubelet() -> None:
    starts: list[float] = []
    told = Told(annotations={"run_for": "5", "exit_code": "1"})
    known = -1
    while len(starts) < 9:
        told.play(steps=1)
        if "running" in told.container()["state"] and told.container()["restartCount"] != known:
            known = told.container()["restartCount"]
            starts.append(told.steps[-1][0])
    pauses = [after - before - 5 for before, after in pairwise(starts)]
    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_crash_loop_shows_what_kubectl_shows() -> None:
    told = Told(annotations={"run_for": "1", "exit_code": "2", "termination_message": "no disk"})
    told.play(seconds=5)
    found = told.container()
    assert found["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert found["state"]["waiting"]["message"] == "back-off 10s restarting failed container=c pod=p_default(00af-1)"
    assert found["restartCount"] == 1
    last = found["lastState"]["terminated"]
    assert (last["exitCode"], last["message"]) == (2, "no disk")
    assert told.phase == "Running"
    assert told.condition("Ready") == ("False", "ContainersNotReady")
    assert "BackOff" in told.said


def test_on_failure_a_pod_is_tried_until_it_succeeds() -> None:
    told = Told("OnFailure", {"exit_code": "1,1,0"}).play()
    assert told.phase == "Succeeded"
    assert told.container()["restartCount"] == 2


def test_a_container_that_ran_for_long_starts_again_at_once() -> None:
    assert [back_off(count, 1.0) for count in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert back_off(7, 601.0) == 0


def test_one_container_may_live_otherwise_than_the_others() -> None:
    both = [{"name": "c", "image": "i"}, {"name": "side", "image": "i"}]
    told = Told("Never", {"run_for": "10", "exit_code.side": "4", "run_for.side": "2"}, containers=both).play()
    assert told.steps == [(0, "Running"), (2, "Running"), (10, "Failed")]


def test_init_containers_run_one_after_the_other_and_then_the_others() -> None:
    init = [{"name": "one", "image": "i"}, {"name": "two", "image": "i"}]
    told = Told(annotations={"run_for.one": "3", "run_for.two": "4"}, initContainers=init)
    told.play(seconds=2)
    assert (told.phase, told.condition("Initialized")) == ("Pending", ("False", "ContainersNotInitialized"))
    assert told.container()["state"]["waiting"]["reason"] == "PodInitializing"
    assert told.container("two")["state"]["waiting"]["reason"] == "PodInitializing"
    told.play(seconds=3)
    assert "running" in told.container("two")["state"]
    assert told.container("one")["state"]["terminated"]["reason"] == "Completed"
    told.play()
    assert told.steps == [(0, "Pending"), (3, "Pending"), (7, "Running")]


def test_init_containers_end_at_once_unless_they_are_named() -> None:
    told = Told(initContainers=[{"name": "one", "image": "i"}]).play()
    assert told.steps == [(0, "Running")]
    assert told.container("one")["state"]["terminated"]["exitCode"] == 0


def test_an_init_container_that_fails_ends_the_pod_or_is_tried_again() -> None:
    init = [{"name": "one", "image": "i"}]
    told = Told("Never", {"exit_code.one": "5"}, initContainers=init).play()
    assert told.phase == "Failed"
    again = Told("OnFailure", {"exit_code.one": "5,5,0", "run_for": "2"}, initContainers=init).play()
    assert again.container("one")["restartCount"] == 2
    assert again.phase == "Succeeded"


def test_a_sidecar_stays_beside_and_ends_with_the_others() -> None:
    init = [{"name": "log", "image": "i", "restartPolicy": "Always"}]
    told = Told("Never", {"run_for": "5"}, initContainers=init)
    told.play(seconds=1)
    assert told.condition("Ready") == ("True", None)
    assert "running" in told.container("log")["state"]
    told.play()
    assert told.phase == "Succeeded"
    assert "terminated" in told.container("log")["state"]


def test_what_waits_says_why_and_may_start_later() -> None:
    told = Told(annotations={"waiting": "ImagePullBackOff"}).play()
    assert told.phase == "Pending"
    waiting = told.container()["state"]["waiting"]
    assert waiting == {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "i"'}
    assert told.said == ["Pulling", "Failed", "Failed", "BackOff", "Failed"]
    later = Told(annotations={"waiting": "ContainerCreating", "waiting_for": "30"}).play()
    assert later.steps == [(0, "Pending"), (30, "Running")]
    assert later.condition("Ready") == ("True", None)


def test_it_may_take_time_to_be_ready() -> None:
    told = Told(annotations={"ready_after": "7"}).play()
    assert told.steps == [(0, "Running"), (7, "Running")]
    never = Told(annotations={"ready_after": "never"}).play()
    assert never.condition("Ready") == ("False", "ContainersNotReady")


def test_gates_that_others_open_keep_it_from_being_ready() -> None:
    told = Told(readinessGates=[{"conditionType": "example.com/open"}]).play()
    assert told.condition("Ready") == ("False", "ReadinessGatesNotReady")
    assert told.condition("ContainersReady") == ("True", None)
    told.status["conditions"].append({"type": "example.com/open", "status": "True"})
    told.pod["status"] = SimulatedPod(told.pod, told.now).conclusion()
    assert told.condition("Ready") == ("True", None)
    assert told.condition("example.com/open") == ("True", None)


def test_its_time_may_be_up() -> None:
    told = Told(activeDeadlineSeconds=30).play()
    assert told.steps == [(0, "Running"), (30, "Failed")]
    assert told.status["reason"] == "DeadlineExceeded"
    assert told.container()["state"]["terminated"]["exitCode"] == 137


@pytest.mark.parametrize(("takes", "after", "code"), [("0", 0, 143), ("5", 5, 143), ("60", 30, 137)])
def test_when_it_is_deleted_it_ends_within_its_grace_and_goes(takes: str, after: float, code: int) -> None:
    told = Told(annotations={"terminate_after": takes}).play()
    told.pod["metadata"] |= {"deletionTimestamp": "2026-05-01T12:00:30Z", "deletionGracePeriodSeconds": 30}
    told.play()
    assert told.gone
    assert told.steps[-1] == (after, "Failed")
    assert told.container()["state"]["terminated"]["exitCode"] == code
    assert "Killing" in told.said


@pytest.mark.parametrize("nonsense", ["soon", "-3", "nan", "1e400", "\u0663"])
def test_annotations_without_sense_harm_nobody(nonsense: str) -> None:
    told = Told("Never", {"run_for": nonsense, "exit_code": nonsense, "ready_after": nonsense}).play(steps=5)
    assert told.phase in ("Running", "Succeeded")

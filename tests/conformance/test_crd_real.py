"""What a class says, a real API server does: the CRD is taken without a warning, and objects behave like the class."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from tests.support.everything import (
    Choices,
    Color,
    Everything,
    EverythingOld,
    EverythingSpec,
    Fixed,
    Port,
    Rolling,
    Source,
    Strategy,
)

from flyball.api import Condition, DynamicObject, ObjectMeta, Quantity, crd_of, to_dict
from flyball.client import Client, ServerWarning
from flyball.errors import Invalid
from flyball.k8s.coordination.v1 import Lease, LeaseSpec
from flyball.k8s.core.v1 import Container, EmptyDirVolumeSource, Pod, PodSpec, PodTemplateSpec, Volume
from flyball.testing.eventually import eventually
from flyball.testing.realcluster import RealCluster

pytestmark = pytest.mark.real

_numbers = count(1)
SPEC: dict[str, Any] = {"name": "abc"}


class Server:
    """A client, and the warnings that came."""

    def __init__(self, config: Any) -> None:
        self.warnings: list[ServerWarning] = []
        self.client = Client(config=config, on_warning=self.warnings.append)

    async def stored(self, spec: EverythingSpec | dict[str, Any], **other: Any) -> DynamicObject:
        """Create it from JSON, and return what the server has made of it."""
        body = {
            "apiVersion": "flyball.example.org/v1",
            "kind": "Everything",
            "metadata": {"name": f"e{next(_numbers)}", "namespace": "default"},
            "spec": spec if isinstance(spec, dict) else to_dict(spec),
            **other,
        }
        return await self.client.create(DynamicObject(body), field_validation="Ignore")

    async def refused(self, spec: EverythingSpec | dict[str, Any]) -> str:
        """Create it, and return why the server would not."""
        with pytest.raises(Invalid) as caught:
            await self.stored(spec)
        return caught.value.message


@pytest.fixture
async def server(real_cluster: RealCluster) -> AsyncIterator[Server]:
    made = Server(real_cluster.config)
    async with made.client:
        crd = DynamicObject(crd_of(EverythingOld, Everything))
        await made.client.apply(crd, field_manager="flyball-test", force=True)
        await eventually(lambda: made.client.list(Everything, namespace="default"), lambda _: True)
        assert made.warnings == []
        yield made


@pytest.mark.capability("C68")
async def test_defaults_come_from_the_class(server: Server) -> None:
    stored = (await server.stored(SPEC))["spec"]
    assert stored == {
        "size": 2,
        "ratio": 0.5,
        "name": "abc",
        "color": "red",
        "level": 1,
        "mode": "x",
        "on": True,
        "memory": "64Mi",
        "timeout": "1m30s",
        "port": 80,
        "tags": [],
        "box": {"low": 0, "high": 10},
        "selector": "all",
        "growing": 0,
        "first": "a",
    }


async def test_typed_objects_make_the_whole_way(server: Server) -> None:
    spec = EverythingSpec(
        name="abc",
        color=Color.GREEN,
        data=b"\x00\xff",
        since=datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
        tick=datetime(2026, 1, 2, 3, 4, 5, 0, UTC),
        memory=Quantity("1.5Gi"),
        ports=[Port(number=80), Port(number=80, protocol="UDP")],
    )
    made = await server.client.create(Everything.new(f"e{next(_numbers)}", namespace="default", spec=spec))
    assert made.spec.color is Color.GREEN
    assert made.spec.data == b"\x00\xff"
    assert made.spec.since == datetime(2026, 1, 2, 3, 4, 5, 0, UTC)
    assert made.spec.memory == Quantity("1536Mi")
    assert [(port.number, port.protocol) for port in made.spec.ports or []] == [(80, "TCP"), (80, "UDP")]


@pytest.mark.capability("C68")
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"size": 101}, "less than or equal to 100"),
        ({"size": 3}, "multiple of 2"),
        ({"ratio": 0}, "greater than 0"),
        ({"ratio": 1}, "less than 1"),
        ({"name": "A"}, "should match"),
        ({"name": ""}, "at least 1 chars"),
        ({"name": "a" * 21}, "may not be more than 20"),
        ({"color": "blue"}, 'supported values: "red", "green"'),
        ({"level": 3}, 'supported values: "1", "2"'),
        ({"mode": "z"}, 'supported values: "x", "y"'),
        ({"data": "%"}, "must be of type byte"),
        ({"since": "now"}, "must be of type date-time"),
        ({"day": "now"}, "must be of type date"),
        ({"address": "300.1.1.1"}, "must be of type ipv4"),
        ({"memory": "much"}, "should match"),
        ({"timeout": "long"}, "must be of type duration"),
        ({"port": 1.5}, "must be of type"),
        ({"tags": ["a", "a"]}, "Duplicate value"),
        ({"tags": list("abcdef")}, "at most 5 items"),
        ({"unique": [1, 1]}, "Duplicate value"),
        ({"ports": [{"number": 1}, {"number": 1}]}, "Duplicate value"),
        ({"ports": [{}]}, "spec.ports[0].number: Required value"),
        ({"lines": ["123456789"]}, "may not be more than 8"),
        ({"labels": {}}, "at least 1 properties"),
        ({"labels": {"a": "123456789"}}, "may not be more than 8"),
        ({"box": {"low": 11}}, "low must not be above high"),
        ({"source": {}}, "exactly one of git, http must be set"),
        ({"source": {"git": "a", "http": "b"}}, "exactly one of git, http must be set"),
        ({"strategy": {"type": "Rolling"}}, "rolling must be set if, and only if, type is Rolling"),
        ({"strategy": {"rolling": {}}}, "rolling must be set if, and only if, type is Rolling"),
        ({"choices": {"a": "1", "b": "2"}}, "at most one of a, b must be set"),
        ({"choices": {"a": "1"}}, "at least one of b, c must be set"),
        ({"manifest": {"kind": "Pod"}}, "apiVersion"),
        ({"raw": "long"}, "may not be more than 3"),
        ({"drawn": 3}, "spec.drawn in body must be of type"),
    ],
)
async def test_constraints_are_enforced(server: Server, wrong: dict[str, Any], words: str) -> None:
    assert words in await server.refused({**SPEC, **wrong})


async def test_a_required_field_is_missed(server: Server) -> None:
    assert "spec.name: Required value" in await server.refused({})


async def test_unions_take_one(server: Server) -> None:
    spec = EverythingSpec(
        name="abc",
        source=Source(git="x"),
        strategy=Strategy(type="Rolling", rolling=Rolling()),
        choices=Choices(c="1"),
    )
    stored = (await server.stored(spec))["spec"]
    assert stored["strategy"] == {"type": "Rolling", "rolling": {"surge": "25%"}}


async def test_what_is_not_named_is_pruned_or_kept(server: Server) -> None:
    unknown = {"unknown": {"a": 1}}
    stored = (
        await server.stored(
            {
                **SPEC,
                **unknown,
                "anything": [1, {"a": None}],
                "opaque": {"deep": {"er": 1}},
                "free": unknown,
                "half": {"low": 1, "more": 2},
                "box": {"low": 1, "more": 2},
                "manifest": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **unknown},
            }
        )
    )["spec"]
    assert "unknown" not in stored
    assert stored["anything"] == [1, {"a": None}]
    assert stored["opaque"] == {"deep": {"er": 1}}
    assert stored["free"] == unknown
    assert stored["half"] == {"low": 1, "high": 10, "more": 2}
    assert stored["box"] == {"low": 1, "high": 10}
    assert stored["manifest"]["unknown"] == {"a": 1}


async def test_a_null_is_kept_only_where_the_class_says_so(server: Server) -> None:
    stored = (await server.stored({**SPEC, "maybe": None, "size": None, "raw": None}))["spec"]
    assert stored["maybe"] is None
    assert stored["size"] == 2
    assert "raw" not in stored


@pytest.mark.capability("C68")
async def test_a_pod_template_keeps_its_labels_and_needs_no_containers(server: Server) -> None:
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"a": "b"}), spec=PodSpec(node_name="n"))
    stored = (await server.stored(EverythingSpec(name="abc", template=template)))["spec"]
    assert stored["template"] == {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n"}}
    assert "containers[0].name: Required" in await server.refused(
        {**SPEC, "template": {"spec": {"containers": [{"image": "a"}]}}}
    )


@pytest.mark.capability("C68")
@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"className": "a"}, {"className": "b"}, "the field is immutable"),
        ({"className": "a"}, {}, "className: the field is immutable"),
        ({}, {"className": "a"}, "className: the field is immutable"),
        ({"host": "a"}, {"host": "b"}, "cannot be changed once it is set"),
        ({"host": "a"}, {}, "host: the field cannot be changed once it is set"),
        ({}, {"host": "a"}, None),
        ({"fixed": {"a": 1}}, {"fixed": {"a": 2}}, "the whole is immutable"),
        ({"growing": 2}, {"growing": 1}, "it may only grow"),
        ({"first": "x"}, {"first": "y"}, "failed rule"),
    ],
)
async def test_rules_about_changes(
    server: Server, before: dict[str, Any], after: dict[str, Any], words: str | None
) -> None:
    stored = await server.stored({**SPEC, **before})
    stored["spec"] = {**SPEC, **after}
    if words is None:
        assert (await server.client.update(stored))["spec"]["host"] == "a"
        return
    with pytest.raises(Invalid) as caught:
        await server.client.update(stored)
    assert words in caught.value.message


async def test_a_rule_of_the_kind_names_its_reason(server: Server) -> None:
    with pytest.raises(Invalid) as caught:
        await server.client.create(
            Everything.new("e" * 25, namespace="default", spec=EverythingSpec(name="abc", fixed=Fixed()))
        )
    assert caught.value.causes[0]["reason"] == "FieldValueForbidden"
    assert "the name is too long" in caught.value.message


@pytest.mark.capability("C69")
async def test_selectable_fields_and_scale(server: Server) -> None:
    made = await server.stored({**SPEC, "color": "green", "size": 4})
    name = made.metadata.name
    found = await server.client.list(Everything, namespace="default", fields=f"spec.color=green,metadata.name={name}")
    assert [each.metadata.name for each in found] == [name]
    assert await server.client.list(Everything, namespace="default", fields="spec.mode=y") == []
    await server.client.scale(made, replicas=8)
    assert (await server.client.get(Everything, name, namespace="default")).spec.size == 8


@pytest.mark.capability("C69")
async def test_columns_and_names_for_kubectl(server: Server, real_cluster: RealCluster) -> None:
    name = (await server.stored({**SPEC, "size": 6})).metadata.name
    header, row = _kubectl(real_cluster, "get", "evy", name, "-o", "wide").splitlines()
    assert header.split() == ["NAME", "SIZE", "COLOUR", "READY", "READY", "AGE"]
    assert row.split()[:3] == [name, "6", "red"]
    assert "COLOUR" not in _kubectl(real_cluster, "get", "flyball", name)
    assert "How many of them." in _kubectl(real_cluster, "explain", "everythings.spec.size")


@pytest.mark.capability("C69")
async def test_a_deprecated_version_warns_and_keeps_what_it_does_not_know(server: Server) -> None:
    old = EverythingOld.new(f"e{next(_numbers)}", namespace="default")
    old_json = {**to_dict(old), "spec": {"size": 4, "name": "abc", "growing": 3}}
    made = await server.client.create(DynamicObject(old_json))
    assert [warning.text for warning in server.warnings] == ["flyball.example.org/v1beta1 Everything goes; use v1"]
    stored = await server.client.get(Everything, made.metadata.name, namespace="default")
    assert (stored.spec.size, stored.spec.growing) == (4, 3)


async def test_status_and_conditions_travel(server: Server) -> None:
    name = (await server.stored(SPEC)).metadata.name
    read = await server.client.get(Everything, name, namespace="default")
    read.status.ready = 1
    read.status.set_condition("Ready", True, reason="AllThere", now=datetime(2026, 1, 2, 3, 4, 5, 678, UTC))
    written = await server.client.patch(read, subresource="status")
    assert written.status.is_true("Ready")
    assert written.status.condition("Ready") == Condition(
        type="Ready",
        status="True",
        reason="AllThere",
        message="",
        last_transition_time=datetime(2026, 1, 2, 3, 4, 5, 0, UTC),
    )


async def test_micro_times_are_written_as_the_server_wants_them(server: Server) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 0, UTC)
    lease = Lease.new(f"l{next(_numbers)}", namespace="default", spec=LeaseSpec(renew_time=moment))
    assert (await server.client.create(lease)).spec.renew_time == moment


@pytest.mark.parametrize(
    "text",
    [
        "1500m",
        "1n",
        "0.0000000001",
        "1.0000000001Ki",
        "512Mi",
        "3E",
        "1e-3",
        "1.25e10",
        "0.1",
        "9999999Pi",
        "1024Mi",
        "1536Ki",
        "1e3",
        "12e-4",
        "1.5Gi",
        "0",
        "100k",
        "1000000",
    ],
)
async def test_quantities_are_canonical_as_the_server_writes_them(server: Server, text: str) -> None:
    volume = Volume(name="v", empty_dir=EmptyDirVolumeSource(size_limit=text))
    pod = Pod.new(
        f"q{next(_numbers)}",
        namespace="default",
        spec=PodSpec(containers=[Container(name="a", image="a")], volumes=[volume]),
    )
    made = await server.client.create(pod, dry_run=True)
    assert made.spec.volumes is not None
    assert made.spec.volumes[0].empty_dir == EmptyDirVolumeSource(size_limit=Quantity(text).canonical())


def _kubectl(cluster: RealCluster, *words: str) -> str:
    command = [str(cluster.binaries.path("kubectl")), f"--kubeconfig={cluster.kubeconfig}", "-n=default", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout

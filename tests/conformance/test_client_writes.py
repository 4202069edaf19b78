"""Every way to write, against a real API server."""

from __future__ import annotations

import pytest
from tests.support.realclient import client_of, widgets_are_served
from tests.support.widgets import Plain, Widget, WidgetSpec

from flyball.api import DynamicObject, PartialObjectMetadata
from flyball.client import (
    JsonPatch,
    MergePatch,
    ServerWarning,
    StrategicPatch,
    UnregisteredKind,
    dynamic,
    metadata_of,
    ref,
)
from flyball.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Invalid,
    NotFound,
    UnsupportedMediaType,
)
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec
from flyball.k8s.core.v1 import ConfigMap, Container, EnvVar, Namespace, PodSpec, PodTemplateSpec
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta
from flyball.testing.realcluster import RealCluster

pytestmark = pytest.mark.real


def deployment(replicas: int | None = 1) -> Deployment:
    labels = {"app": "web"}
    containers = [Container(name=name, image=f"{name}:1") for name in ("a", "b")]
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=containers))
    spec = DeploymentSpec(replicas=replicas, selector=LabelSelector(match_labels=labels), template=template)
    return Deployment.new("web", spec=spec)


@pytest.mark.capability("S6")
async def test_an_object_from_birth_to_death(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        made = await c.create(ConfigMap.new("a", data={"x": "1"}))
        assert made.metadata.uid
        with pytest.raises(AlreadyExists, match=f'^create ConfigMap {c.namespace}/a: configmaps "a" already exists'):
            await c.create(ConfigMap.new("a"))
        assert (await c.get(ConfigMap, "a")).data == {"x": "1"}
        made.data = {"x": "2"}
        updated = await c.update(made)
        assert updated.data == {"x": "2"}
        made.data = {"x": "3"}
        with pytest.raises(Conflict, match=f"^update ConfigMap {c.namespace}/a: "):
            await c.update(made)
        copy = await c.create(ConfigMap.new("b", data=updated.data))
        assert copy.metadata.uid != updated.metadata.uid
        assert await c.delete(updated) is None
        with pytest.raises(NotFound):
            await c.get(ConfigMap, "a")
        assert await c.delete(ConfigMap, "a", missing_ok=True) is None


async def test_a_read_object_can_be_created_elsewhere(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        first = await c.create(ConfigMap.new("a", data={"x": "1"}))
        first.metadata.name = "b"
        second = await c.create(first)
        assert second.data == {"x": "1"}
        generated = ConfigMap.new("")
        generated.metadata.generate_name = "many-"
        assert (await c.create(generated)).metadata.name.startswith("many-")


async def test_a_class_that_is_no_kind_sends_nothing(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        with pytest.raises(UnregisteredKind):
            await c.create(Plain())


# -- patches


@pytest.mark.capability("C6")
async def test_the_difference_fails_on_a_stale_version(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        mine = await c.create(ConfigMap.new("a", data={"x": "1", "y": "1"}))
        theirs = await c.get(ConfigMap, "a")
        theirs.data = {"x": "1", "y": "2"}
        theirs = await c.patch(theirs)
        mine.data = {"x": "2", "y": "1"}
        with pytest.raises(Conflict, match=f"^patch ConfigMap {c.namespace}/a: "):
            await c.patch(mine)
        assert (await c.get(ConfigMap, "a")).data == {"x": "1", "y": "2"}
        assert (await c.patch(mine, guard=False)).data == {"x": "2", "y": "2"}


async def test_a_difference_of_nothing_changes_nothing(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        made = await c.create(deployment())
        same = await c.patch(made)
        assert same.metadata.resource_version == made.metadata.resource_version
        listed = (await c.list(ConfigMap, fields={"metadata.name": "none"}), await c.list(Deployment))[1][0]
        assert (await c.patch(listed)).metadata.name == "web"


async def test_json_patch(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        made = await c.create(ConfigMap.new("a", data={"x": "1"}))
        patched = await c.patch(made, JsonPatch([{"op": "add", "path": "/data/y", "value": "2"}]))
        assert patched.data == {"x": "1", "y": "2"}
        with pytest.raises(Invalid):
            await c.patch(patched, JsonPatch([{"op": "test", "path": "/data/y", "value": "3"}]))
        with pytest.raises(Conflict):
            await c.patch(made, JsonPatch([{"op": "remove", "path": "/data/y"}]), guard=True)
        assert (await c.patch(patched, JsonPatch([{"op": "remove", "path": "/data/y"}]), guard=True)).data == {"x": "1"}


async def test_merge_patch(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        made = await c.create(ConfigMap.new("a", data={"x": "1"}))
        patch = MergePatch({"data": {"x": None, "y": "2"}})
        assert (await c.patch(ref(ConfigMap, "a"), patch)).data == {"y": "2"}
        with pytest.raises(Conflict):
            await c.patch(made, patch, guard=True)


async def test_strategic_patch_merges_lists_by_key(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        await widgets_are_served(c)
        made = await c.create(deployment())
        container = {"name": "a", "env": [EnvVar(name="X", value="1")]}
        patch = StrategicPatch({"spec": {"template": {"spec": {"containers": [container]}}}})
        patched = await c.patch(made, patch)
        assert patched.spec.template.spec is not None
        containers = patched.spec.template.spec.containers
        assert [(item.name, item.image, len(item.env or [])) for item in containers] == [
            ("a", "a:1", 1),
            ("b", "b:1", 0),
        ]
        widget = await c.create(Widget.new("w"))
        with pytest.raises(UnsupportedMediaType, match=f"^patch Widget {c.namespace}/w: "):
            await c.patch(widget, StrategicPatch({"spec": {"size": 2}}))


# -- apply


@pytest.mark.capability("C2")
@pytest.mark.capability("C3")
async def test_apply_owns_what_the_author_set_and_nothing_else(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        made = await c.apply(deployment(replicas=None))
        assert made.spec.replicas == 1
        (entry,) = [entry for entry in made.metadata.managers() if entry.operation == "Apply"]
        assert entry.manager == "flyball-test"
        owned = bytes(entry.fields_v1)
        assert b"f:selector" in owned
        assert b"f:replicas" not in owned
        await c.scale(made, replicas=3)
        again = await c.apply(deployment(replicas=None))
        assert again.spec.replicas == 3


@pytest.mark.capability("C2")
async def test_a_conflict_names_the_managers(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        await c.apply(ConfigMap.new("a", data={"x": "1", "y": "1"}))
        with pytest.raises(
            Conflict, match=r'^apply ConfigMap .*/a: .*conflict with "flyball-test": \.data\.x'
        ) as caught:
            await c.apply(ConfigMap.new("a", data={"x": "2"}), field_manager="other")
        assert [(cause["reason"], cause["field"]) for cause in caught.value.causes] == [
            ("FieldManagerConflict", ".data.x")
        ]
        taken = await c.apply(ConfigMap.new("a", data={"x": "2"}), field_manager="other", force=True)
        assert taken.data == {"x": "2", "y": "1"}
        given_up = await c.apply(ConfigMap.new("a"))
        assert given_up.data == {"x": "2"}


@pytest.mark.capability("C2")
async def test_apply_of_status_and_scale(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        await widgets_are_served(c)
        await c.apply(Widget.new("w", spec=WidgetSpec(size=2)))
        wanted = Widget.new("w", spec=WidgetSpec(size=9))
        wanted.status.ready = 1
        applied = await c.apply(wanted, subresource="status")
        assert (applied.spec.size, applied.status.ready) == (2, 1)
        subresources = {entry.subresource for entry in applied.metadata.managers() if entry.operation == "Apply"}
        assert subresources == {None, "status"}
        # A server cannot apply to the scale of a custom resource (500, 1.36), so a Deployment it is.
        await c.apply(deployment())
        scale = DynamicObject(apiVersion="autoscaling/v1", kind="Scale", metadata={"name": "web"}, spec={"replicas": 4})
        answer = await c.apply(scale, subresource="scale", of=Deployment, force=True)
        assert answer["spec"] == {"replicas": 4}
        assert (await c.get(Deployment, "web")).spec.replicas == 4


# -- nothing is lost


UNKNOWN = {
    "apiVersion": "example.org/v1",
    "kind": "Widget",
    "metadata": {"name": "w"},
    "spec": {"size": 1, "shape": "round", "parts": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}]},
}


@pytest.mark.capability("S6")
@pytest.mark.parametrize("way", ["update", "patch", "apply"])
async def test_unknown_fields_survive_every_way_to_write(real_cluster: RealCluster, way: str) -> None:
    async with client_of(real_cluster) as c:
        await widgets_are_served(c)
        await c.create(DynamicObject(UNKNOWN))
        widget = await c.get(Widget, "w")
        widget.spec.size = 5
        match way:
            case "update":
                written = await c.update(widget)
            case "patch":
                written = await c.patch(widget)
            case _:
                written = await c.apply(Widget.new("w", spec=WidgetSpec(size=5)), force=True)
        assert written.spec.size == 5
        stored = await c.get(dynamic("example.org/v1", "Widget"), "w")
        assert stored["spec"] == {**UNKNOWN["spec"], "size": 5}  # type: ignore[dict-item]


async def test_status_apart_from_spec(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        await widgets_are_served(c)
        widget = await c.create(Widget.new("w", spec=WidgetSpec(size=2)))
        widget.status.ready, widget.spec.size = 1, 9
        widget = await c.patch(widget, subresource="status")
        assert (widget.spec.size, widget.status.ready) == (2, 1)
        widget.status.ready = 2
        widget = await c.update(widget, subresource="status")
        assert (widget.spec.size, widget.status.ready) == (2, 2)
        assert (await c.get(Widget, "w", subresource="status")).status.ready == 2


# -- options


@pytest.mark.capability("C4")
async def test_nothing_of_a_dry_run_reaches_storage(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        await widgets_are_served(c)
        before = await c.create(ConfigMap.new("a", data={"x": "1"}))
        widget = await c.create(Widget.new("w", spec=WidgetSpec(size=2)))
        async with client_of(real_cluster, namespace=c.namespace, dry_run=True) as dry:
            assert (await dry.create(ConfigMap.new("b"))).metadata.uid
            changed = await dry.get(ConfigMap, "a")
            changed.data = {"x": "2"}
            assert (await dry.update(changed)).data == {"x": "2"}
            assert (await dry.patch(changed)).data == {"x": "2"}
            assert (await dry.patch(changed, JsonPatch([{"op": "remove", "path": "/data"}]))).data in (None, {})
            await dry.apply(ConfigMap.new("c", data={"y": "1"}))
            await dry.apply(Widget.new("w", spec=WidgetSpec(size=3)), force=True)
            await dry.scale(Widget, "w", replicas=7)
            await dry.delete(ConfigMap, "a")
            await dry.delete_collection(ConfigMap)
            await dry.request(
                "POST",
                f"/api/v1/namespaces/{c.namespace}/configmaps",
                body=b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"}}',
            )
        after = [cm for cm in await c.list(ConfigMap) if cm.metadata.name != "kube-root-ca.crt"]
        assert [(cm.metadata.name, cm.metadata.resource_version) for cm in after] == [
            ("a", before.metadata.resource_version)
        ]
        assert (await c.get(Widget, "w")).metadata.resource_version == widget.metadata.resource_version


@pytest.mark.capability("C5")
@pytest.mark.capability("C7")
async def test_fields_that_the_server_does_not_know(real_cluster: RealCluster) -> None:
    seen: list[ServerWarning] = []
    wrong = DynamicObject(apiVersion="v1", kind="ConfigMap", metadata={"name": "a"}, dta={"x": "1"})
    async with client_of(real_cluster, field_validation="Strict", on_warning=seen.append) as c:
        with pytest.raises(BadRequest, match=r'strict decoding error: unknown field "dta"'):
            await c.create(wrong)
        assert seen == []
        await c.create(wrong, field_validation="Warn")
        assert [str(warning) for warning in seen] == [f'create ConfigMap {c.namespace}/a: unknown field "dta"']
        seen.clear()
        await c.patch(ref(ConfigMap, "a"), MergePatch({"dta": {}}), field_validation="Ignore")
        assert seen == []


@pytest.mark.capability("C7")
async def test_a_deprecated_kind_warns(real_cluster: RealCluster) -> None:
    seen: list[ServerWarning] = []
    async with client_of(real_cluster, on_warning=seen.append) as c:
        await c.list(dynamic("v1", "Endpoints"))
    assert len(seen) == 1
    assert "deprecated" in seen[0].text
    assert str(seen[0]).startswith(f"list Endpoints in {c.namespace}: ")


# -- delete


async def test_the_uid_of_a_read_object_guards_its_name(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        first = await c.create(ConfigMap.new("a"))
        await c.delete(first)
        second = await c.create(ConfigMap.new("a"))
        with pytest.raises(Conflict, match=f"^delete ConfigMap {c.namespace}/a: .*UID"):
            await c.delete(first)
        second.data = {"x": "1"}
        third = await c.patch(second)
        with pytest.raises(Conflict):
            await c.delete(second, guard=True)
        assert await c.delete(third, guard=True) is None


async def test_an_object_with_finalizers_is_only_marked(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        made = ConfigMap.new("a")
        made.metadata.finalizers = ["example.org/wait"]
        left = await c.delete(await c.create(made))
        assert left is not None
        assert left.metadata.deletion_timestamp
        left.metadata.finalizers = []
        await c.patch(left)
        with pytest.raises(NotFound):
            await c.get(ConfigMap, "a")


async def test_the_propagation_is_said(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        obj = await c.create(deployment())
        left = await c.delete(obj, propagation="Foreground")
        assert left is not None
        assert left.metadata.finalizers == ["foregroundDeletion"]


async def test_delete_collection(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        for name in "abc":
            await c.create(ConfigMap.new(name, labels={"pick": str(name != "c")}))
        gone = await c.delete_collection(ConfigMap, labels={"pick": "True"})
        assert [cm.metadata.name for cm in gone] == ["a", "b"]
        assert [cm.metadata.name for cm in await c.list(ConfigMap, labels="pick")] == ["c"]


# -- one door


@pytest.mark.capability("C1")
async def test_all_forms_through_the_same_verbs(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        kind = dynamic("v1", "ConfigMap")
        free = await c.create(DynamicObject(apiVersion="v1", kind="ConfigMap", metadata={"name": "a"}, data={"x": "1"}))
        free["data"]["x"] = "2"
        free = await c.patch(free)
        free["data"]["x"] = "3"
        free = await c.update(free)
        assert (await c.get(kind, "a"))["data"] == {"x": "3"}
        partial = await c.get(metadata_of(ConfigMap), "a")
        assert isinstance(partial, PartialObjectMetadata)
        partial.metadata.labels = {"seen": "yes"}
        partial = await c.patch(partial)
        assert (partial.kind, partial.metadata.labels) == ("ConfigMap", {"seen": "yes"})
        (listed,) = await c.list(metadata_of(kind), labels="seen")
        assert (listed.api_version, listed.kind, listed.metadata.uid) == ("v1", "ConfigMap", partial.metadata.uid)
        assert (await c.get(ConfigMap, "a")).data == {"x": "3"}
        assert await c.delete(listed) is None


async def test_names_with_odd_characters(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        name = f"{c.namespace}:odd name?#&=+ü"
        role = DynamicObject(apiVersion="rbac.authorization.k8s.io/v1", kind="ClusterRole", metadata={"name": name})
        await c.create(role)
        kind = dynamic("rbac.authorization.k8s.io/v1", "ClusterRole")
        assert (await c.get(kind, name)).metadata.name == name
        assert await c.delete(kind, name) is None


async def test_cluster_kinds(real_cluster: RealCluster) -> None:
    async with client_of(real_cluster) as c:
        assert (await c.get(Namespace, c.namespace)).metadata.name == c.namespace
        assert c.namespace in {ns.metadata.name for ns in await c.list(Namespace)}

"""Kinds: their names, their parts, and how they are made."""

from __future__ import annotations

import pytest

from flyball.api import Model, ObjectMeta, Resource, ResourceType, Spec, Status, encode
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec
from flyball.k8s.core.v1 import ConfigMap, Node, Pod


class ShellSpec(Spec):
    size: int = 1


class ShellStatus(Status):
    ready: int = 0


class Shell(Resource, group="example.org", version="v1alpha1", scope="Cluster", plural="shellz"):
    """A shell."""

    spec: ShellSpec
    status: ShellStatus


def test_a_class_is_a_resource_type() -> None:
    assert Shell.resource_type == ResourceType("example.org", "v1alpha1", "Shell", "shellz", False, "shell")
    assert Shell.resource_type.group_resource == "shellz.example.org"
    assert Pod.resource_type.group_resource == "pods"


def test_paths() -> None:
    assert Deployment.resource_type.path("ns", "x", "scale") == "/apis/apps/v1/namespaces/ns/deployments/x/scale"
    assert Deployment.resource_type.path() == "/apis/apps/v1/deployments"
    assert Pod.resource_type.path("ns") == "/api/v1/namespaces/ns/pods"
    assert Node.resource_type.path("ignored", "n") == "/api/v1/nodes/n"


def test_new_makes_a_whole_object() -> None:
    shell = Shell.new("demo", spec=ShellSpec(size=3), labels={"a": "b"}, annotations={"c": "d"})
    assert (shell.api_version, shell.kind) == ("example.org/v1alpha1", "Shell")
    assert shell.metadata == ObjectMeta(name="demo", labels={"a": "b"}, annotations={"c": "d"})
    assert encode(shell) == (
        b'{"apiVersion":"example.org/v1alpha1","kind":"Shell","metadata":{"name":"demo","labels":{"a":"b"},'
        b'"annotations":{"c":"d"}},"spec":{"size":3}}'
    )
    assert ConfigMap.new("c", namespace="ns", data={"a": "b"}).data == {"a": "b"}


def test_spec_and_status_are_always_there_and_not_sent_when_empty() -> None:
    shell = Shell.new("demo")
    assert (shell.spec.size, shell.status.ready) == (1, 0)
    assert b"status" not in encode(shell)
    assert b"spec" not in encode(Deployment.new("d"))
    shell.status.ready = 1
    assert encode(shell).endswith(b'"status":{"ready":1}}')
    one, two = Shell(metadata=ObjectMeta(), spec=ShellSpec(), status=ShellStatus()), Shell.new("x")
    one.spec.size = 9
    assert two.spec.size == 1


def test_new_refuses_parts_of_another_class() -> None:
    with pytest.raises(TypeError, match=r"Shell.new: spec must be a ShellSpec, not DeploymentSpec; write spec=Shell"):
        Shell.new("x", spec=DeploymentSpec())
    with pytest.raises(TypeError, match="dict"):
        Shell.new("x", spec={"size": 3})


def test_repr_is_short_and_dir_is_useful() -> None:
    shell = Shell.new("demo", namespace="ns")
    shell.metadata.resource_version = "12"
    assert repr(shell) == "<Shell ns/demo at 12>"
    assert repr(Shell.new("")) == "<Shell (no name)>"
    assert {"api_version", "kind", "metadata", "spec", "status", "resource_type"} <= set(dir(shell))


def test_group_and_version_belong_together() -> None:
    with pytest.raises(TypeError, match=r"class Half: version is missing; write class Half\(Resource, group"):

        class Half(Resource, group="example.org"):  # pyright: ignore[reportUnusedClass]
            spec: ShellSpec


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match=r"class Wrong: unknown option 'grup'; known are: .*group, version"):

        class Wrong(Resource, grup="example.org", version="v1"):  # pyright: ignore
            spec: ShellSpec


def test_a_class_without_names_is_no_kind_and_can_be_a_base() -> None:
    class Base(Resource):
        extra: str | None = None

    class Derived(Base, group="example.org", version="v1"):
        spec: ShellSpec

    class Newer(Derived, version="v2", kind="Derived"):
        pass

    assert not hasattr(Base, "resource_type")
    assert Derived.resource_type.api_version == "example.org/v1"
    assert Newer.resource_type.api_version == "example.org/v2"
    assert Newer.new("x").api_version == "example.org/v2"


def test_kinds_without_a_spec() -> None:
    class Note(Resource, group="example.org", version="v1"):
        text: str = ""

    class Part(Model):
        a: int = 1

    assert encode(Note.new("x", text="hello")).endswith(b'"text":"hello"}')
    assert Part().a == 1

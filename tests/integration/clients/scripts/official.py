# pyright: basic, reportMissingImports=false
# ruff: noqa: PT017 -- no pytest where this runs
"""The official Python client: typed, untyped (`dynamic`) and custom objects, by way of $KUBECONFIG."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

from _cases import case, deployment, established, gadget, gadgets, left, run, until
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client import ApiException

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"


def space(name: str) -> client.CoreV1Api:
    """A new namespace, and the core API."""
    core = client.CoreV1Api()
    core.create_namespace({"metadata": {"name": name}})
    return core


@contextlib.contextmanager
def refused(code: int, reason: str) -> Iterator[dict[str, Any]]:
    """The server refuses; its Status is given when the block is over."""
    status: dict[str, Any] = {}
    try:
        yield status
    except ApiException as error:
        status.update(json.loads(error.body))
        assert (error.status, status["code"], status["reason"]) == (code, code, reason), status
        assert status["kind"] == "Status"
        assert status["apiVersion"] == "v1"
        return
    raise AssertionError(f"{reason} was expected; nothing was refused")


def definition(group: str) -> None:
    """Serve the kind Gadget in a group."""
    api = client.ApiextensionsV1Api()
    api.create_custom_resource_definition(gadgets(group))
    until(
        lambda: established(
            client.ApiClient().sanitize_for_serialization(api.read_custom_resource_definition(f"gadgets.{group}"))
        )
    )
    objects = client.CustomObjectsApi()

    def served() -> bool:
        try:
            objects.list_cluster_custom_object(group, "v1", "gadgets")
        except ApiException as error:
            assert error.status in (404, 429, 503), error
            return False
        return True

    until(served)


@case
def version_and_discovery(name: str) -> None:
    version = client.VersionApi().get_code()
    assert (version.major, version.minor[:2]) == ("1", "36")
    assert "apps" in [group.name for group in client.ApisApi().get_api_versions().groups]
    assert client.CoreApi().get_api_versions().versions == ["v1"]
    kinds = {resource.name: resource for resource in client.AppsV1Api().get_api_resources().resources}
    assert kinds["deployments"].short_names == ["deploy"]
    assert kinds["deployments/scale"].kind == "Scale"


@case
def objects_come_back_as_models(name: str) -> None:
    core = space(name)
    made = core.create_namespaced_config_map(
        name,
        client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a", labels={"x": "1"}), data={"k": "v"}),
        field_manager="official",
    )
    assert made.metadata.uid
    assert made.metadata.managed_fields[0].manager == "official"
    assert made.metadata.creation_timestamp.tzinfo is not None
    assert made.kind == "ConfigMap"
    read = core.read_namespaced_config_map("a", name)
    assert read == made
    read.data["more"] = "w"
    replaced = core.replace_namespaced_config_map("a", name, read)
    assert replaced.data == {"k": "v", "more": "w"}
    with refused(409, "Conflict") as status:
        core.replace_namespaced_config_map("a", name, made)
    assert "the object has been modified" in status["message"]
    gone = client.ApiClient().sanitize_for_serialization(core.delete_namespaced_config_map("a", name))
    assert gone["status"] == "Success"
    assert gone["details"] == {"name": "a", "kind": "configmaps", "uid": made.metadata.uid}
    with refused(404, "NotFound") as status:
        core.read_namespaced_config_map("a", name)
    assert status["details"] == {"name": "a", "kind": "configmaps"}


@case
def secrets_carry_bytes(name: str) -> None:
    core = space(name)
    core.create_namespaced_secret(name, {"metadata": {"name": "s"}, "stringData": {"password": "hidden"}})
    read = core.read_namespaced_secret("s", name)
    assert (read.type, read.data) == ("Opaque", {"password": "aGlkZGVu"})


@case
def every_kind_of_patch(name: str) -> None:
    space(name)
    apps = client.AppsV1Api()
    apps.create_namespaced_deployment(name, deployment("web"))
    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "registry.test/side:1"}]}}}}
    strategic = apps.patch_namespaced_deployment("web", name, side, _content_type=STRATEGIC)
    assert sorted(each.name for each in strategic.spec.template.spec.containers) == ["main", "side"]
    merged = apps.patch_namespaced_deployment("web", name, side, _content_type=MERGE)
    assert [each.name for each in merged.spec.template.spec.containers] == ["side"]
    steps = [
        {"op": "test", "path": "/spec/replicas", "value": 1},
        {"op": "replace", "path": "/spec/replicas", "value": 4},
    ]
    assert apps.patch_namespaced_deployment("web", name, steps, _content_type=JSON_PATCH).spec.replicas == 4
    with refused(422, "Invalid"):
        apps.patch_namespaced_deployment("web", name, steps, _content_type=JSON_PATCH)
    by_default = apps.patch_namespaced_deployment("web", name, {"metadata": {"labels": {"seen": "yes"}}})
    assert by_default.metadata.labels["seen"] == "yes"
    assert by_default.metadata.labels["app"] == "web"


@case
def server_side_apply_and_its_conflicts(name: str) -> None:
    space(name)
    apps = client.AppsV1Api()

    def apply(replicas: int, manager: str, **more: Any) -> Any:
        body = deployment("web", replicas)
        return apps.patch_namespaced_deployment("web", name, body, field_manager=manager, _content_type=APPLY, **more)

    made = apply(2, "one")
    assert made.spec.replicas == 2
    assert apply(2, "one").metadata.resource_version == made.metadata.resource_version
    with refused(409, "Conflict") as status:
        apply(3, "two")
    assert status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.replicas"}
    ]
    taken = apply(3, "two", force=True)
    managers = {entry.manager: entry for entry in taken.metadata.managed_fields}
    assert "f:replicas" in managers["two"].fields_v1["f:spec"]
    assert "f:replicas" not in managers["one"].fields_v1["f:spec"]


@case
def status_and_scale(name: str) -> None:
    space(name)
    apps = client.AppsV1Api()
    apps.create_namespaced_deployment(name, deployment("web", 2))

    def scaled() -> bool:
        scale = apps.read_namespaced_deployment_scale("web", name)
        assert (scale.spec.replicas, scale.status.selector) == (2, "app=web")
        scale.spec.replicas = 5
        try:
            return apps.replace_namespaced_deployment_scale("web", name, scale).spec.replicas == 5
        except ApiException as error:  # a controller was quicker
            assert error.status == 409, error
            return False

    until(scaled)
    apps.patch_namespaced_deployment_scale("web", name, {"spec": {"replicas": 6}}, _content_type=MERGE)
    read = apps.read_namespaced_deployment("web", name)
    assert (read.spec.replicas, read.metadata.generation) == (6, 3)
    condition = {"type": "Tried", "status": "True", "reason": "Test", "message": "by the official client"}
    apps.patch_namespaced_deployment_status(
        "web", name, {"status": {"conditions": [condition]}, "spec": {"replicas": 1}}, _content_type=STRATEGIC
    )
    read = apps.read_namespaced_deployment_status("web", name)
    assert "Tried" in [each.type for each in read.status.conditions]
    assert read.spec.replicas == 6
    left["deployment"] = {"namespace": name, "name": "web", "replicas": 6}


@case
def pages_and_selectors(name: str) -> None:
    core = space(name)
    for index in range(7):
        core.create_namespaced_config_map(
            name, {"metadata": {"name": f"c{index}", "labels": {"parity": "odd" if index % 2 else "even"}}}
        )
    first = core.list_namespaced_config_map(name, limit=3, label_selector="parity")
    seen = [each.metadata.name for each in first.items]
    assert first.metadata.remaining_item_count in (None, 4)
    going_on = first.metadata._continue
    core.delete_namespaced_config_map("c6", name)  # pages show one moment
    while going_on:
        page = core.list_namespaced_config_map(name, limit=3, _continue=going_on, label_selector="parity")
        assert page.metadata.resource_version == first.metadata.resource_version
        seen += [each.metadata.name for each in page.items]
        going_on = page.metadata._continue
    assert seen == [f"c{index}" for index in range(7)]
    some = core.list_namespaced_config_map(name, label_selector="parity in (odd),parity!=even")
    assert [each.metadata.name for each in some.items] == ["c1", "c3", "c5"]
    one = core.list_config_map_for_all_namespaces(field_selector=f"metadata.namespace={name},metadata.name=c2")
    assert [each.metadata.name for each in one.items] == ["c2"]
    with refused(400, "BadRequest"):
        core.list_namespaced_config_map(name, label_selector="=")
    core.delete_collection_namespaced_config_map(name, label_selector="parity=even")
    assert [each.metadata.name for each in core.list_namespaced_config_map(name, label_selector="parity").items] == [
        "c1",
        "c3",
        "c5",
    ]


@case
def a_watch_resumes_where_it_ended(name: str) -> None:
    core = space(name)
    start = core.list_namespaced_config_map(name, label_selector="w").metadata.resource_version
    labels = {"labels": {"w": ""}}
    core.create_namespaced_config_map(name, {"metadata": {"name": "a", **labels}})
    options = {"label_selector": "w", "timeout_seconds": 20}
    seen = []
    watching = watch.Watch()
    for event in watching.stream(core.list_namespaced_config_map, name, resource_version=start, **options):
        seen.append((event["type"], event["object"].metadata.name))
        break
    core.patch_namespaced_config_map("a", name, {"data": {"x": "1"}}, _content_type=MERGE)
    core.patch_namespaced_config_map("a", name, {"metadata": {"labels": {"w": None}}}, _content_type=MERGE)
    core.create_namespaced_config_map(name, {"metadata": {"name": "b", **labels}})
    timer = threading.Timer(0.1, core.delete_namespaced_config_map, ("b", name))
    timer.start()
    again = watch.Watch()
    resume = watching.resource_version
    for event in again.stream(core.list_namespaced_config_map, name, resource_version=resume, **options):
        seen.append((event["type"], event["object"].metadata.name))
        if seen[-1] == ("DELETED", "b"):
            break
    timer.join()
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b"), ("DELETED", "b")]


@case
def a_watch_ends_when_it_was_told_to(name: str) -> None:
    core = space(name)
    core.create_namespaced_config_map(name, {"metadata": {"name": "a", "labels": {"w": ""}}})
    stream = watch.Watch().stream(core.list_namespaced_config_map, name, label_selector="w", timeout_seconds=1)
    assert [(event["type"], event["object"].metadata.name) for event in stream] == [("ADDED", "a")]


@case
def custom_objects(name: str) -> None:
    space(name)
    group = f"{name}.example.org"
    definition(group)
    objects = client.CustomObjectsApi()
    place = (group, "v1", name, "gadgets")
    made = objects.create_namespaced_custom_object(*place, gadget(group, "g", 2))
    assert made["spec"] == {"size": 2, "color": "green"}
    with refused(409, "AlreadyExists"):
        objects.create_namespaced_custom_object(*place, gadget(group, "g", 2))
    with refused(422, "Invalid") as status:
        objects.create_namespaced_custom_object(*place, gadget(group, "h", 11, color="blue"))
    # The server goes through the fields of an object in no order of its own.
    assert sorted(cause["field"] for cause in status["details"]["causes"]) == ["<nil>", "spec.color", "spec.size"]
    for told in (
        "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10",
        'spec.color: Unsupported value: "blue": supported values: "red", "green"',
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation",
    ):
        assert told in status["message"]
    with refused(422, "Invalid") as status:
        objects.create_namespaced_custom_object(*place, gadget(group, "h", 7))
    assert "seven is taken" in status["message"]
    with refused(415, "UnsupportedMediaType"):
        objects.patch_namespaced_custom_object(*place, "g", {"spec": {"size": 3}}, _content_type=STRATEGIC)
    patched = objects.patch_namespaced_custom_object(*place, "g", {"spec": {"size": 3}}, _content_type=MERGE)
    assert (patched["spec"]["size"], patched["metadata"]["generation"]) == (3, 2)
    objects.patch_namespaced_custom_object_status(
        *place, "g", {"status": {"ready": 3}, "spec": {"size": 9}}, _content_type=MERGE
    )
    scale = objects.get_namespaced_custom_object_scale(*place, "g")
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 3)
    objects.patch_namespaced_custom_object_scale(*place, "g", {"spec": {"replicas": 5}}, _content_type=MERGE)
    read = objects.get_namespaced_custom_object(*place, "g")
    assert (read["spec"]["size"], read["status"], read["metadata"]["generation"]) == (5, {"ready": 3}, 3)
    applied = objects.patch_namespaced_custom_object(
        *place,
        "g",
        gadget(group, "g", 5, parts=[{"name": "wheel", "weight": 1}]),
        field_manager="official",
        force=True,
        _content_type=APPLY,
    )
    assert applied["spec"]["parts"] == [{"name": "wheel", "weight": 1}]
    left["gadget"] = {"group": group, "namespace": name, "name": "g", "size": 5}


@case
def the_dynamic_client(name: str) -> None:
    space(name)
    group = f"dynamic-{name}.example.org"
    definition(group)
    untyped = dynamic.DynamicClient(client.ApiClient())
    kind = untyped.resources.get(api_version=f"{group}/v1", kind="Gadget")
    made = kind.create(body=gadget(group, "g", 1), namespace=name)
    assert made.spec.color == "green"
    kind.server_side_apply(body=gadget(group, "g", 4), namespace=name, field_manager="dynamic", force_conflicts=True)
    body = {"kind": "Gadget", "apiVersion": f"{group}/v1", "metadata": {"name": "g"}, "status": {"phase": "done"}}
    kind.status.patch(body=body, namespace=name, content_type=MERGE)
    assert kind.get(name="g", namespace=name).to_dict()["status"] == {"phase": "done"}
    version = kind.get(namespace=name).metadata.resourceVersion
    kind.delete(name="g", namespace=name)
    events = kind.watch(namespace=name, resource_version=version, timeout=10)
    assert next(iter(events))["type"] == "DELETED"
    try:
        kind.get(name="g", namespace=name)
    except dynamic.exceptions.NotFoundError as error:
        assert error.summary() == f'gadgets.{group} "g" not found'
    else:
        raise AssertionError("the gadget is still there")


@case
def errors_say_what_is_wrong(name: str) -> None:
    core = space(name)
    with refused(422, "Invalid") as status:
        core.create_namespaced_config_map(name, {"metadata": {"name": "Not_A_Name"}})
    assert status["details"]["causes"][0]["field"] == "metadata.name"
    with refused(404, "NotFound"):
        core.create_namespaced_config_map("nowhere", {"metadata": {"name": "a"}})
    core.create_namespaced_config_map(name, {"metadata": {"name": "a"}})
    with refused(422, "Invalid") as status:  # creations are checked by the client itself, patches are not
        core.patch_namespaced_config_map("a", name, {"dat": {}}, field_validation="Strict", _content_type=MERGE)
    assert 'unknown field "dat"' in status["message"]
    with refused(400, "BadRequest"):
        core.list_namespaced_config_map(name, limit=1, _continue="nonsense")
    with refused(401, "Unauthorized"):
        wrong = client.Configuration.get_default_copy()
        wrong.cert_file = wrong.key_file = None
        wrong.api_key = {"BearerToken": "Bearer nobody"}
        client.CoreV1Api(client.ApiClient(wrong)).list_namespace()


@case
def dry_runs_leave_nothing(name: str) -> None:
    core = space(name)
    made = core.create_namespaced_config_map(name, {"metadata": {"name": "a"}}, dry_run="All")
    assert made.metadata.uid
    with refused(404, "NotFound"):
        core.read_namespaced_config_map("a", name)


@case
def owners_take_their_own_with_them(name: str) -> None:
    core = space(name)
    owner = core.create_namespaced_config_map(name, {"metadata": {"name": "owner"}})
    reference = client.V1OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid)
    core.create_namespaced_config_map(
        name, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="owned", owner_references=[reference]))
    )
    core.delete_namespaced_config_map("owner", name, propagation_policy="Background")

    def gone() -> bool:
        return "owned" not in [each.metadata.name for each in core.list_namespaced_config_map(name).items]

    until(gone)
    left["gone"] = {"namespace": name, "name": "owned"}


@case
def finalizers_hold_an_object(name: str) -> None:
    core = space(name)
    core.create_namespaced_config_map(name, {"metadata": {"name": "a", "finalizers": ["test.example.org/hold"]}})
    core.delete_namespaced_config_map("a", name)
    held = core.read_namespaced_config_map("a", name)
    assert held.metadata.deletion_timestamp is not None
    core.patch_namespaced_config_map("a", name, {"metadata": {"finalizers": None}}, _content_type=MERGE)
    with refused(404, "NotFound"):
        core.read_namespaced_config_map("a", name)


@case
def tokens_reviews_leases_and_events(name: str) -> None:
    core = space(name)
    core.create_namespaced_service_account(name, {"metadata": {"name": "robot"}})
    token = core.create_namespaced_service_account_token("robot", name, {"spec": {"expirationSeconds": 600}})
    review = client.AuthenticationV1Api().create_token_review({"spec": {"token": token.status.token}})
    assert review.status.user.username == f"system:serviceaccount:{name}:robot"
    coordination = client.CoordinationV1Api()
    lease = coordination.create_namespaced_lease(
        name,
        {
            "metadata": {"name": "leader"},
            "spec": {"holderIdentity": "a", "acquireTime": "2026-01-02T03:04:05.678901Z", "leaseDurationSeconds": 15},
        },
    )
    assert lease.spec.acquire_time.microsecond == 678901
    core.create_namespaced_event(
        name,
        {
            "metadata": {"generateName": "e-"},
            "involvedObject": {"kind": "ConfigMap", "namespace": name, "name": "a"},
            "reason": "Tried",
            "type": "Normal",
            "message": "an event",
        },
    )
    found = core.list_namespaced_event(name, field_selector="reason=Tried,involvedObject.name=a")
    assert [each.message for each in found.items] == ["an event"]


@case
def files_are_created_as_they_are(name: str) -> None:
    core = space(name)
    documents = [deployment("web"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]
    utils.create_from_yaml(client.ApiClient(), yaml_objects=documents, namespace=name)
    assert client.AppsV1Api().read_namespaced_deployment("web", name).spec.strategy.type == "RollingUpdate"
    until(lambda: [each.metadata.name for each in core.list_namespaced_config_map(name).items].count("a"))


@case
def leaders_are_elected(name: str) -> None:
    space(name)
    from kubernetes.leaderelection import electionconfig, leaderelection
    from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

    def lead() -> None:
        """Nobody calls it: the election is taken step by step."""

    lock = LeaseLock("leader", name, "one")
    settings = electionconfig.Config(
        lock, lease_duration=17, renew_deadline=15, retry_period=5, onstarted_leading=lead, onstopped_leading=lead
    )
    election = leaderelection.LeaderElection(settings)
    assert election.try_acquire_or_renew()
    assert election.try_acquire_or_renew()
    lease = client.CoordinationV1Api().read_namespaced_lease("leader", name)
    assert lease.spec.holder_identity == "one"


if __name__ == "__main__":
    config.load_kube_config()
    run()

"""Controllers do the same on a real API server: tests of the embedded cluster, run again, unchanged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from tests.integration.controller import (
    test_children,
    test_errors,
    test_forms,
    test_reconcile,
    test_status,
    test_triggers,
    test_workspace,
)
from tests.integration.controller.harness import DEFAULT

from flyball.client import Client, HttpTransport, MergePatch, ref
from flyball.errors import NotFound
from flyball.k8s.apiextensions.v1 import CustomResourceDefinition
from flyball.k8s.core.v1 import ConfigMap, Namespace, Secret
from flyball.k8s.events.v1 import Event
from flyball.testing import eventually
from flyball.testing.realcluster import RealCluster

pytestmark = pytest.mark.real


class World:
    """What those tests use of a cluster."""

    def __init__(self, cluster: RealCluster) -> None:
        self.transport = HttpTransport(cluster.config)
        self.client = Client(transport=self.transport)

    async def clean(self) -> None:
        """Leave nothing of a test behind."""
        client = self.client
        for definition in await client.list(CustomResourceDefinition):
            group = definition.spec.group
            if group == "example.org":
                await self._release(definition)
                await client.delete(definition, missing_ok=True)
                await eventually(partial(self._gone, definition.metadata.name), timeout=30)
        for kind in (ConfigMap, Secret):
            await client.delete_collection(kind, namespace=DEFAULT)
        await client.delete_collection(Event, namespace=DEFAULT)
        for namespace in ("elsewhere",):
            await client.delete(Namespace, namespace, missing_ok=True)

    async def _release(self, definition: CustomResourceDefinition) -> None:
        from flyball.client import dynamic

        kind = dynamic(f"{definition.spec.group}/{definition.spec.versions[0].name}", definition.spec.names.kind)
        for obj in await self.client.list(kind, namespace="*"):
            if obj.metadata.finalizers:
                patch = MergePatch({"metadata": {"finalizers": None}})
                await self.client.patch(ref(kind, obj.metadata.name, namespace=obj.metadata.namespace), patch)

    async def _gone(self, name: str) -> bool:
        try:
            await self.client.get(CustomResourceDefinition, name)
        except NotFound:
            return True
        return False


@pytest.fixture
async def world(real_cluster: RealCluster) -> AsyncIterator[World]:
    world = World(real_cluster)
    await world.clean()
    yield world
    await world.clean()
    await world.client.aclose()


TESTS: list[Callable[..., Any]] = [
    test_reconcile.test_a_child_follows_its_owner_and_the_status_tells,
    test_triggers.test_own_status_writes_do_not_wake_and_foreign_changes_do,
    test_triggers.test_by_default_a_foreign_status_does_not_wake_and_the_rest_does,
    test_triggers.test_an_owner_that_was_dropped_is_looked_at,
    test_errors.test_a_bug_is_told_counted_and_retried_and_the_condition_is_lowered_again,
    test_errors.test_a_terminal_error_is_told_and_not_retried_until_the_object_changes,
    test_errors.test_a_status_that_the_server_refuses_is_told,
    test_errors.test_a_lost_answer_to_a_status_write_converges,
    test_children.test_a_foreign_object_of_the_childs_name_is_left_alone,
    test_children.test_a_child_that_is_being_deleted_is_waited_for,
    test_children.test_creating_what_is_there_and_ours_gives_it,
    test_children.test_its_metadata_may_be_changed_and_the_status_follows,
    test_children.test_a_finalizer_comes_first_runs_at_the_end_and_goes,
    test_children.test_a_failing_finalizer_is_visible_and_foreign_ones_are_kept,
    test_children.test_a_kind_without_a_class,
    test_forms.test_a_plain_function_runs_in_a_thread_with_the_same_verbs,
    test_forms.test_a_machine_is_a_reconciler,
    test_status.test_conditions_have_their_time_and_generation_and_are_all_there,
    test_status.test_what_the_class_and_other_writers_know_is_kept,
    test_status.test_events_tell_of_changes_of_conditions_only,
    test_status.test_repeated_events_become_a_series,
    test_workspace.test_notes_survive_and_a_pass_that_wrote_is_run_again_at_once,
    test_workspace.test_an_intent_is_written_down_before_and_keeps_its_nonce,
    test_workspace.test_a_conflict_ends_the_pass_and_says_nothing,
]


@pytest.mark.capability("S7")
@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
async def test_on_a_real_api_server(test: Callable[..., Any], world: World) -> None:
    await test(world)


@pytest.mark.parametrize("form", ["pruner", "declared"])
async def test_declared_children_on_a_real_api_server(world: World, form: str) -> None:
    cluster: Any = world
    await test_children.test_declared_children_are_made_and_leftovers_deleted_one_at_a_time(cluster, form)

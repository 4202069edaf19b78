"""Jobs and Deployments of a real kube-controller-manager, whose Pods our scheduler and simulated kubelet play."""

from __future__ import annotations

import pytest
from tests.support.realclient import client_of, pods_can_be_made

from flyball.api import is_true
from flyball.k8s.apps.v1 import Deployment, DeploymentSpec
from flyball.k8s.batch.v1 import Job, JobSpec
from flyball.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from flyball.k8s.meta.v1 import LabelSelector, ObjectMeta
from flyball.testing import RealCluster, eventually

pytestmark = pytest.mark.real


def job(exit_code: int) -> Job:
    marks = {"simulate.flyball.dev/run-for": "0.2", "simulate.flyball.dev/exit-code": str(exit_code)}
    spec = PodSpec(restart_policy="Never", containers=[Container(name="c", image="i")])
    template = PodTemplateSpec(metadata=ObjectMeta(annotations=marks), spec=spec)
    return Job.new(f"ends-with-{exit_code}", spec=JobSpec(backoff_limit=0, template=template))


async def test_jobs_end_and_deployments_become_ready(real_cluster_with_nodes: RealCluster) -> None:
    async with client_of(real_cluster_with_nodes) as client:
        await pods_can_be_made(client)
        await client.create(job(0))
        await client.create(job(3))
        labels = {"app": "web"}
        pod = PodTemplateSpec(
            metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="c", image="i")])
        )
        spec = DeploymentSpec(replicas=2, selector=LabelSelector(match_labels=labels), template=pod)
        await client.create(Deployment.new("web", spec=spec))
        await eventually(
            lambda: client.get(Job, "ends-with-0"), lambda one: is_true(one.status.conditions, "Complete"), timeout=60
        )
        await eventually(
            lambda: client.get(Job, "ends-with-3"), lambda one: is_true(one.status.conditions, "Failed"), timeout=60
        )
        await eventually(lambda: client.get(Deployment, "web"), lambda one: one.status.ready_replicas == 2, timeout=60)

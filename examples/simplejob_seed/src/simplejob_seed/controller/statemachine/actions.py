"""The guide's actions, faithfully: its defects are kept, so that they can be shown."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from flyball.errors import NotFound
from flyball.fsm.operator import Done, Result
from flyball.fsm.run import action
from flyball.k8s.batch.v1 import Job, JobSpec
from flyball.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from flyball.k8s.meta.v1 import ObjectMeta, OwnerReference

from simplejob_seed.api import SimpleJob

if TYPE_CHECKING:
    from .zz_generated_statemachine import Machine


@action("Initialize")
def initialize(m: Machine) -> None:
    m.state.instance = None


@action("LoadResource")
async def load_resource(m: Machine) -> None:
    try:
        m.state.instance = await m.context.client.get(SimpleJob, m.state.resource_name, namespace=m.state.namespace)
    except NotFound:
        m.logger.info("it is gone")


@action("CheckJobStatus")
async def check_job_status(m: Machine) -> None:
    try:
        m.state.job = await m.context.client.get(Job, m.state.resource_name, namespace=m.state.namespace)
    except NotFound:
        m.state.job = None


@action("CreateJob")
async def create_job(m: Machine) -> None:
    instance = loaded(m)
    m.state.job = await m.context.client.create(job_of(instance))
    instance.status.attempts += 1


@action("RetryJob")
async def retry_job(m: Machine) -> None:
    if m.state.job is not None:
        try:
            await m.context.client.delete(m.state.job, propagation="Background")
        except NotFound:
            m.logger.info("it is gone already")
    loaded(m).status.attempts += 1


@action("SetPhase")
def set_phase(m: Machine) -> None:
    status, job = loaded(m).status, m.state.job
    assert job is not None
    if (job.status.succeeded or 0) > 0:
        status.phase, status.message = "Completed", "Job completed successfully"
    elif (job.status.failed or 0) > 0 or status.attempts >= (loaded(m).spec.max_retries or 3):
        status.phase, status.message = "Failed", "Job failed"
    elif (job.status.active or 0) > 0:
        status.phase, status.message = "Running", "Job is running"
    else:
        status.phase, status.message = "Pending", "Job is pending or being created"


@action("UpdateStatus")
async def update_status(m: Machine) -> None:
    instance = loaded(m)
    m.state.result = Result.after(timedelta(seconds=3))
    if instance.status.phase in ("Completed", "Failed"):
        m.state.result = Done
        if instance.status.completion_time is None:
            instance.status.completion_time = m.context.clock.now()
    await m.context.client.update(instance, subresource="status")


@action("HandleError")
def handle_error(m: Machine) -> None:
    m.state.result = Done


def loaded(m: Machine) -> SimpleJob:
    assert m.state.instance is not None
    return m.state.instance


def job_of(instance: SimpleJob) -> Job:
    meta = instance.metadata
    owner = OwnerReference(
        api_version=instance.resource_type.api_version,
        kind=instance.resource_type.kind,
        name=meta.name or "",
        uid=meta.uid or "",
        controller=True,
    )
    container = Container(name="job", image=instance.spec.image, command=["/bin/sh", "-c", instance.spec.command])
    return Job(
        metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, owner_references=[owner]),
        spec=JobSpec(
            backoff_limit=0,
            template=PodTemplateSpec(spec=PodSpec(restart_policy="Never", containers=[container])),
        ),
    )

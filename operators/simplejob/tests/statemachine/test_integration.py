"""The machine in a cluster."""

from __future__ import annotations

import pytest
from flyball.k8s.batch.v1 import Job
from flyball.testing import Cluster, eventually

from simplejob.api import SimpleJob
from simplejob.controller import simplejob


@pytest.mark.integration
async def test_one_pass_over_a_new_object(cluster: Cluster, sample: SimpleJob) -> None:
    """A new object gets its first attempt."""
    sample.metadata.uid = sample.metadata.resource_version = ""
    async with cluster.running(simplejob):
        await cluster.client.create(sample)
        (job,) = await eventually(lambda: cluster.client.list(Job, namespace="default"))
    assert job.metadata.labels["jobs.example.com/attempt"] == "1"

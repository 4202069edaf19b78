"""The controllers that make workloads progress in the embedded cluster; ordinary Flyball code.

`replicasets`, `deployments` and `jobs` make Pods, `scheduler` puts them onto nodes; what happens to them there is the
business of `flyball.controlplane.kubelet`. `running` starts all of it on a cluster.
"""

from __future__ import annotations

from flyball.controlplane.workloads.deployments import deployments
from flyball.controlplane.workloads.jobs import jobs
from flyball.controlplane.workloads.replicasets import replicasets
from flyball.controlplane.workloads.running import Workloads
from flyball.controlplane.workloads.scheduler import scheduler

__all__ = ["Workloads", "deployments", "jobs", "replicasets", "scheduler"]

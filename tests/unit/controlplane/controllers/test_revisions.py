"""Revisions have the names that kube-controller-manager gives them."""

from __future__ import annotations

import pytest

from flyball.controlplane.controllers.revisions import data_of, hash_of, template_of
from flyball.k8s.apps.v1 import ControllerRevision

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "containers": [
            {
                "command": ["sh", "-c", "a < b && c > d é \u2028"],
                "image": "i:1",
                "imagePullPolicy": "IfNotPresent",
                "livenessProbe": {
                    "failureThreshold": 3,
                    "httpGet": {"path": "/", "port": "http", "scheme": "HTTP"},
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "timeoutSeconds": 1,
                },
                "name": "c",
                "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
}


def test_a_name_is_the_one_that_was_recorded() -> None:
    """A real kube-controller-manager 1.36.4 called this one web-74ff96cd76."""
    assert hash_of(data_of(TEMPLATE)) == "74ff96cd76"


@pytest.mark.parametrize("collisions", [1, 2])
def test_a_collision_gives_another_name(collisions: int) -> None:
    assert hash_of(data_of(TEMPLATE), collisions) != hash_of(data_of(TEMPLATE))


def test_what_is_kept_comes_back() -> None:
    kept = template_of(ControllerRevision(data=data_of(TEMPLATE), revision=1))
    assert kept.metadata is not None
    assert kept.metadata.labels == {"app": "web"}
    assert kept.spec is not None
    assert kept.spec.containers[0].image == "i:1"

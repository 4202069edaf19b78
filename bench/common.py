"""What the comparisons share: the objects they read, clocks, memory, tables, and the peers' environment."""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
PEERS_VENV = CACHE / "bench-venv"
PEERS = ("kubernetes", "kubernetes_asyncio", "lightkube", "kr8s", "orjson", "msgspec")

Json = dict[str, Any]


# --- objects ----------------------------------------------------------------------------------------------------------


def pod(index: int, *, managed_fields: bool = False) -> Json:
    """A running Pod of a Deployment with a sidecar, as a server shows it: about 8 kB without managedFields."""
    name = f"checkout-service-7d9c5b8f6d-{index:05x}"
    node = f"ip-10-0-{index % 250}-{index % 199}.eu-central-1.compute.internal"
    metadata: Json = {
        "name": name,
        "generateName": "checkout-service-7d9c5b8f6d-",
        "namespace": f"team-{index % 40:02d}",
        "uid": str(uuid.UUID(int=index * 7919 + (1 << 100))),
        "resourceVersion": str(48_000_000 + index),
        "generation": 1,
        "creationTimestamp": "2026-02-11T08:15:42Z",
        "labels": {
            "app.kubernetes.io/name": "checkout-service",
            "app.kubernetes.io/instance": f"checkout-{index % 40:02d}",
            "app.kubernetes.io/version": "4.17.2",
            "app.kubernetes.io/managed-by": "Helm",
            "pod-template-hash": "7d9c5b8f6d",
        },
        "annotations": {
            "checksum/config": f"{index:064x}",
            "kubectl.kubernetes.io/restartedAt": "2026-02-11T08:15:40Z",
            "prometheus.io/port": "9102",
            "prometheus.io/scrape": "true",
        },
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "checkout-service-7d9c5b8f6d",
                "uid": str(uuid.UUID(int=index // 3 + (2 << 100))),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    if managed_fields:
        metadata["managedFields"] = _managed_fields()
    return {
        "metadata": metadata,
        "spec": _pod_spec(index, node),
        "status": _pod_status(index),
    }


def _container(name: str, image: str, port: int) -> Json:
    probe = {
        "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
        "initialDelaySeconds": 5,
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    fields = {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace", "POD_IP": "status.podIP"}
    return {
        "name": name,
        "image": image,
        "args": ["--config=/etc/checkout/config.yaml", f"--listen=:{port}"],
        "ports": [
            {"name": "http", "containerPort": port, "protocol": "TCP"},
            {"name": "metrics", "containerPort": port + 22, "protocol": "TCP"},
        ],
        "env": [
            *(
                {"name": key, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
                for key, path in fields.items()
            ),
            {"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": "checkout-database", "key": "url"}}},
            {"name": "GOMAXPROCS", "value": "2"},
        ],
        "resources": {
            "limits": {"cpu": "2", "memory": "1Gi"},
            "requests": {"cpu": "250m", "memory": "512Mi"},
        },
        "volumeMounts": [
            {"name": "config", "readOnly": True, "mountPath": "/etc/checkout"},
            {"name": "cache", "mountPath": "/var/cache/checkout"},
            {
                "name": "kube-api-access-x7k2p",
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            },
        ],
        "livenessProbe": probe,
        "readinessProbe": {**probe, "periodSeconds": 5},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
        },
    }


def _token_volume() -> Json:
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    roots = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    namespace = {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
        }
    }
    return {
        "name": "kube-api-access-x7k2p",
        "projected": {"sources": [token, roots, namespace], "defaultMode": 420},
    }


def _pod_spec(index: int, node: str) -> Json:
    return {
        "volumes": [
            {"name": "config", "configMap": {"name": "checkout-config", "defaultMode": 420}},
            {"name": "cache", "emptyDir": {"sizeLimit": "2Gi"}},
            _token_volume(),
        ],
        "initContainers": [
            {
                "name": "migrate",
                "image": "registry.example.org/shop/checkout:4.17.2",
                "args": ["migrate", "--wait"],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                "volumeMounts": [{"name": "config", "readOnly": True, "mountPath": "/etc/checkout"}],
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "containers": [
            _container("checkout", "registry.example.org/shop/checkout:4.17.2", 8080),
            _container("proxy", "registry.example.org/mesh/proxy:1.29.1", 15001),
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "checkout",
        "serviceAccount": "checkout",
        "nodeName": node,
        "securityContext": {"runAsUser": 10001, "fsGroup": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "podAffinityTerm": {
                            "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "checkout-service"}},
                            "topologyKey": "kubernetes.io/hostname",
                        },
                    }
                ]
            }
        },
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("not-ready", "unreachable")
        ],
        "priority": index % 3,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _pod_status(index: int) -> Json:
    address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
    order = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "observedGeneration": 1,
        "phase": "Running",
        "conditions": [
            {
                "type": kind,
                "observedGeneration": 1,
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": "2026-02-11T08:16:03Z",
            }
            for kind in order
        ],
        "hostIP": "10.0.17.4",
        "hostIPs": [{"ip": "10.0.17.4"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": "2026-02-11T08:15:42Z",
        "initContainerStatuses": [_container_status("migrate", index, done=True)],
        "containerStatuses": [_container_status("checkout", index), _container_status("proxy", index)],
        "qosClass": "Burstable",
    }


def _container_status(name: str, index: int, *, done: bool = False) -> Json:
    container = f"containerd://{index:08x}{'5f3a9c' * 9}{name[0]}1"
    running = {"running": {"startedAt": "2026-02-11T08:15:58Z"}}
    finished = {
        "terminated": {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": "2026-02-11T08:15:44Z",
            "finishedAt": "2026-02-11T08:15:55Z",
            "containerID": container,
        }
    }
    return {
        "name": name,
        "state": finished if done else running,
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": f"registry.example.org/shop/{name}:4.17.2",
        "imageID": f"registry.example.org/shop/{name}@sha256:{'0b1d6f2c' * 8}",
        "containerID": container,
        "started": not done,
    }


def _managed_fields() -> list[Json]:
    def tree(value: Any) -> Json:
        if not isinstance(value, dict):
            return {}
        return {f"f:{key}": tree(inner) for key, inner in cast("Json", value).items()}

    container: Json = {".": {}, **tree(_container("checkout", "image", 8080))}
    spec: Json = {"f:containers": {f'k:{{"name":"{name}"}}': container for name in ("checkout", "proxy")}}
    conditions: Json = {
        f'k:{{"type":"{kind}"}}': {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}}
        for kind in ("ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready")
    }
    owned: Json = {"f:metadata": tree(pod(0)["metadata"]), "f:spec": {**tree(_pod_spec(0, "")), **spec}}
    status: Json = {"f:status": {"f:conditions": conditions, **tree(_pod_status(0))}}
    return [
        _manager("kube-controller-manager", owned, ""),
        _manager("kubelet", status, "status"),
    ]


def _manager(name: str, fields: Json, subresource: str) -> Json:
    entry = {
        "manager": name,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-02-11T08:15:42Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {**entry, "subresource": subresource} if subresource else entry


def pod_list(count: int, *, managed_fields: bool = False) -> bytes:
    """The answer to a list of Pods, in the compact JSON that a server sends."""
    items = [pod(index, managed_fields=managed_fields) for index in range(count)]
    answer = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "48100000"}, "items": items}
    return json.dumps(answer, separators=(",", ":")).encode()


def pod_file(count: int, *, managed_fields: bool = False) -> Path:
    """The same in a file, so that a process that is measured need not make it."""
    path = CACHE / f"bench-pods-{count}{'-managed' if managed_fields else ''}.json"
    CACHE.mkdir(exist_ok=True)
    path.write_bytes(pod_list(count, managed_fields=managed_fields))
    return path


# --- measuring --------------------------------------------------------------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, with the collector off, as Flyball decodes lists; what comes out is not kept."""
    gc.collect()
    gc.disable()
    started = time.perf_counter()
    result = work()
    taken = time.perf_counter() - started
    gc.enable()
    del result
    return taken


def resident() -> int:
    """Bytes of memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def settle() -> None:
    """Collect garbage and give free memory back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


# --- output -----------------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(['---'] + ['---:'] * (len(head) - 1))}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def in_its_own_process(module: str, contender: str, share: float, pods: int, managed_fields: bool) -> Json:
    """What a program says of one contender, run in the peers' environment on a file of Pods."""
    count = max(1, int(pods * share))
    path = pod_file(count, managed_fields=managed_fields)
    command = [str(peers_python()), "-m", module, "--measure", contender, "--file", str(path), "--pods", str(count)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{module}: {contender} failed:\n{ran.stderr}")
    found: Json = json.loads(ran.stdout)
    return {"size": path.stat().st_size / count, **found}


def compare_contenders(
    description: str | None, module: str, measure: Callable[[str, Path, int], Json], row: Row
) -> int:
    """The command line of a program that compares contenders: a table without and one with managedFields."""
    from bench.contenders import CONTENDERS

    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--only", nargs="*", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument("--measure", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.file, options.pods)))
        return 0
    for managed_fields in (False, True):
        found = {
            name: in_its_own_process(module, name, CONTENDERS[name].share, options.pods, managed_fields)
            for name in options.only
        }
        size = max(each["size"] for each in found.values())
        title = (
            f"{options.pods:,} Pods of {size / 1000:.1f} kB, {'with' if managed_fields else 'without'} managedFields"
        )
        rows = [[CONTENDERS[name].name + version_of(name), *row.cells(name, each)] for name, each in found.items()]
        print(table([title, *row.head], rows), end="\n\n")
    return 0


@dataclass(frozen=True, slots=True)
class Row:
    """The columns of a comparison: their titles, and the cells for what was measured of a contender."""

    head: tuple[str, ...]
    cells: Callable[[str, Json], list[str]]


# --- peers ------------------------------------------------------------------------------------------------------------


def peers_python() -> Path:
    """The Python of an environment that holds the peers, made when it is missing."""
    python = PEERS_VENV / "bin/python"
    marker = PEERS_VENV / ".ready"
    if marker.exists() and marker.read_text() == _wanted():
        return python
    shutil.rmtree(PEERS_VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(PEERS_VENV)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--editable", str(ROOT)], check=True)
    marker.write_text(_wanted())
    return python


def version_of(contender: str) -> str:
    """` 1.2.3` for a library that is a peer, nothing for Flyball's own ways."""
    package = contender.partition("-")[0]
    if package not in PEERS:
        return ""
    found = next(PEERS_VENV.glob(f"lib/python3*/site-packages/{package}-*.dist-info"), None)
    return f" {found.name.removesuffix('.dist-info').rpartition('-')[2]}" if found else ""


def _wanted() -> str:
    return "\n".join(PEERS)

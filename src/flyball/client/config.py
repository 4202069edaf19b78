"""Where the cluster is, found as kubectl finds it.

In this order: the path given; the files of `$KUBECONFIG`; `~/.kube/config`; the files that Kubernetes puts into every
pod. A kubeconfig that somebody named and that is not there is an error, never a reason to look elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from flyball.client.cluster_config import ClusterConfig, ExecConfig, Impersonation
from flyball.client.kubeconfig import default_paths, read_kubeconfig
from flyball.errors import ConfigError

__all__ = ["ClusterConfig", "ExecConfig", "Impersonation", "in_cluster_config", "load_config"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token, the cluster's CA and its namespace."""


def load_config(
    path: str | Path | None = None,
    context: str | None = None,
    *,
    namespace: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> ClusterConfig:
    """The configuration of a context (None: the current one) of the kubeconfig, or of the pod we run in."""
    if path is not None:
        return read_kubeconfig([Path(path).expanduser()]).select(context, namespace)
    paths, named = default_paths(environ)
    present = [file for file in paths if _exists(file)]
    if present:
        return read_kubeconfig(present).select(context, namespace)
    where = ", ".join(str(file) for file in paths)
    if named:
        raise ConfigError(f"KUBECONFIG names {where}: no such file; correct KUBECONFIG or create the file")
    if context is None and in_pod(environ):
        found = in_cluster_config(environ=environ)
        return replace(found, namespace=namespace) if namespace else found
    if context is not None:
        raise ConfigError(f'context "{context}": KUBECONFIG is not set and {where} does not exist; set KUBECONFIG')
    raise ConfigError(
        f"no cluster is configured: KUBECONFIG is not set, {where} does not exist, and this is not a pod; "
        "set KUBECONFIG to the kubeconfig of a cluster"
    )


def in_pod(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether Kubernetes told this process where its API server is."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))


def in_cluster_config(*, environ: Mapping[str, str] = os.environ, directory: Path | None = None) -> ClusterConfig:
    """The configuration that a pod gets from its service account; token and CA are read again when they rotate."""
    if not in_pod(environ):
        raise ConfigError(
            "in-cluster configuration: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, "
            "so this is not a pod; use a kubeconfig"
        )
    files = directory or SERVICE_ACCOUNT
    token, ca = files / "token", files / "ca.crt"
    if not _exists(token):
        raise ConfigError(
            f"in-cluster configuration: {token} does not exist; "
            "give the pod a service account (automountServiceAccountToken)"
        )
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    return ClusterConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=environ.get("POD_NAMESPACE") or _namespace(files / "namespace"),
        ca_file=ca if _exists(ca) else None,
        token_file=token,
        disable_compression=True,
        source=f"in-cluster configuration {files}",
    )


def _exists(file: Path) -> bool:
    """Whether there is something to read; what may not even be looked at is read, which then says so."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _namespace(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"

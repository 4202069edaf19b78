"""A real control plane for tests and for people: etcd, kube-apiserver, kube-controller-manager, on loopback only.

    with RealCluster() as cluster:             # or: async with
        kubectl(f"--kubeconfig={cluster.kubeconfig}", "get", "namespaces")

    python -m flyball.testing.realcluster      # prints a kubeconfig and stays until Ctrl-C

What it guarantees: it is ready when the context is entered (with controllers: the `default` ServiceAccount exists); the
state lies in a folder of its own and vanishes with it; every program ends with the process that entered it, kill -9
included (see `processes`). What it does not: there are no nodes and no kubelet, so no pod ever runs.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import json
import os
import shutil
import signal
import ssl
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import yaml

from flyball.errors import FlyballError
from flyball.testing.binaries import Binaries, find_binaries
from flyball.testing.certificates import CertificateAuthority, KeyPair, service_account_key
from flyball.testing.processes import ProcessError, Supervisor, free_port

if TYPE_CHECKING:
    from flyball.client.config import ClusterConfig

__all__ = ["RealCluster"]

ETCD, APISERVER, CONTROLLERS, SCHEDULER = "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"

_HOSTS = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1")
_ATTEMPTS = 3
_START_SECONDS = 60.0
_LOOK_AGAIN_SECONDS = 0.05


class RealCluster:
    """One control plane. `controllers=False` starts only etcd and kube-apiserver, where no helping hand is wanted.

    A text names the controllers that shall run, as kube-controller-manager's `--controllers` does: `*,-job-controller`.
    """

    def __init__(
        self,
        *,
        controllers: bool | str = True,
        scheduler: bool = False,
        apiserver_flags: Sequence[str] = (),
        controller_flags: Sequence[str] = (),
        binaries: Binaries | None = None,
        folder: Path | None = None,
    ) -> None:
        self._controllers = controllers
        self._scheduler = scheduler
        self._flags = list(apiserver_flags)
        self._controller_flags = list(controller_flags)
        self._binaries = binaries
        self._given_folder = folder
        self._folder: Path | None = None
        self._supervisor: Supervisor | None = None
        self._etcd_port = 0
        self._port = 0

    # -- life

    def start(self) -> RealCluster:
        """Start everything and wait until it is ready; nothing is left behind when it fails."""
        binaries = self._binaries = self._binaries or find_binaries()
        for program in self._programs():
            binaries.path(program)
        folder = self._folder = self._given_folder or Path(tempfile.mkdtemp(prefix="flyball-cluster-"))
        self._supervisor = Supervisor(None if self._given_folder else folder)
        try:
            self._write_credentials(folder)
            self._start_with_free_port(self._start_etcd)
            self._start_with_free_port(self._start_apiserver)
            self._write_kubeconfigs()
            if self._controllers:
                self.start_controllers()
            if self._scheduler:
                self._start_scheduler()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End everything, the API server before etcd, and remove the state."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return
        with contextlib.suppress(ProcessError):
            for program in reversed(self._programs()):
                supervisor.stop(program, 3)
        supervisor.close()
        if self._given_folder is None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> RealCluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> RealCluster:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    # -- how to reach it

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def kubeconfig(self) -> Path:
        """A complete kubeconfig of a user who may do everything (group system:masters); only the owner may read it."""
        return self.folder / "kubeconfig"

    @property
    def config(self) -> ClusterConfig:
        """The same, as the client takes it."""
        from flyball.client.config import load_config

        return load_config(self.kubeconfig)

    @property
    def folder(self) -> Path:
        """State, certificates and logs (`NAME.log`) of this control plane."""
        if self._folder is None or self._supervisor is None:
            raise ProcessError("the control plane is not running: enter it with `with RealCluster() as cluster`")
        return self._folder

    @property
    def authority(self) -> CertificateAuthority:
        """The authority that the API server trusts: sign certificates of further users with it."""
        return self._authority

    @property
    def binaries(self) -> Binaries:
        """The programs in use; `binaries.path("kubectl")` is the kubectl that belongs to them."""
        if self._binaries is None:
            self._binaries = find_binaries()
        return self._binaries

    @property
    def supervisor(self) -> Supervisor:
        """The owner of the programs, for logs and crashes: `supervisor.kill("kube-apiserver")`."""
        if self._supervisor is None:
            raise ProcessError("the control plane is not running")
        return self._supervisor

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig that authenticates as another user, by client certificate."""
        name = "".join(letter if letter.isalnum() else "-" for letter in user)
        path = self.folder / f"kubeconfig-{name}"
        self._write_kubeconfig(path, self._authority.client(user, groups))
        return path

    # -- disturbing it

    def restart_apiserver(self) -> None:
        """Stop the API server (every watch ends) and start it again on the same port; wait until it is ready."""
        self.stop_apiserver()
        self.start_apiserver()

    def stop_apiserver(self) -> None:
        """Stop the API server; etcd and the controllers go on."""
        self.supervisor.stop(APISERVER, 5)

    def start_apiserver(self) -> None:
        """Start a stopped API server on the port it had; wait until it is ready."""
        self._start_apiserver()

    def stop_controllers(self) -> None:
        """Stop the controllers: nothing is collected, rolled out or created by itself any more."""
        self.supervisor.stop(CONTROLLERS, 3)

    def start_controllers(self) -> None:
        """Start the controllers; wait until one of them has made the `default` ServiceAccount."""
        command = [
            str(self.binaries.path(CONTROLLERS)),
            f"--kubeconfig={self.folder / 'kubeconfig-controllers'}",
            f"--service-account-private-key-file={self.folder / 'service-account.key'}",
            f"--root-ca-file={self.folder / 'ca.crt'}",
            f"--cluster-signing-cert-file={self.folder / 'ca.crt'}",
            f"--cluster-signing-key-file={self.folder / 'ca.key'}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
            *([f"--controllers={self._controllers}"] if isinstance(self._controllers, str) else []),
            *self._controller_flags,
        ]
        self._run(CONTROLLERS, command)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait(CONTROLLERS, lambda: self.request("GET", account)[0] == 200)

    def compact(self, *, restart_apiserver: bool = True) -> int:
        """Throw away etcd's history and give the revision up to which it is gone.

        The API server keeps recent events in memory and serves watches from there; only after a restart does a watch
        from an old resourceVersion get 410. `restart_apiserver=False` leaves it running: then paged lists and exact
        reads of the past get 410, watches may go on.
        """
        first = base64.b64encode(b"\0").decode()
        asked = self._etcd("/v3/kv/range", {"key": first, "range_end": first, "limit": "1", "keys_only": True})
        revision = int(asked["header"]["revision"])
        self._etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        if restart_apiserver:
            self.restart_apiserver()
        return revision

    def request(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """One request as the all-mighty user: the status code and the body. (0, b"") when nobody answers."""
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=10, context=self._tls())
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    # -- inside

    def _programs(self) -> list[str]:
        chosen = {ETCD: True, APISERVER: True, CONTROLLERS: bool(self._controllers), SCHEDULER: self._scheduler}
        return [program for program, wanted in chosen.items() if wanted]

    def _write_credentials(self, folder: Path) -> None:
        authority = self._authority = CertificateAuthority()
        serving = authority.server(_HOSTS, "kube-apiserver")
        admin = authority.client("flyball-admin", ["system:masters"])
        accounts = service_account_key()
        for name, content in {
            "ca.crt": authority.certificate,
            "ca.key": authority.key,
            "apiserver.crt": serving.certificate,
            "apiserver.key": serving.key,
            "admin.crt": admin.certificate,
            "admin.key": admin.key,
            "service-account.pub": accounts.certificate,
            "service-account.key": accounts.key,
        }.items():
            _write_private(folder / name, content)

    def _write_kubeconfigs(self) -> None:
        admin = KeyPair((self.folder / "admin.crt").read_bytes(), (self.folder / "admin.key").read_bytes())
        self._write_kubeconfig(self.kubeconfig, admin)
        for name, user in {
            "controllers": "system:kube-controller-manager",
            "scheduler": "system:kube-scheduler",
        }.items():
            self._write_kubeconfig(self.folder / f"kubeconfig-{name}", self._authority.client(user))

    def _write_kubeconfig(self, path: Path, pair: KeyPair) -> None:
        def encoded(data: bytes) -> str:
            return base64.b64encode(data).decode()

        cluster = {"server": self.server, "certificate-authority-data": encoded(self._authority.certificate)}
        user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "user"}}],
            "current-context": "real",
        }
        _write_private(path, yaml.safe_dump(content, sort_keys=False).encode())

    def _start_with_free_port(self, start: Callable[[], None]) -> None:
        """A port that was free may be taken a moment later: then another one."""
        for attempt in range(1, _ATTEMPTS + 1):
            if start == self._start_etcd:
                self._etcd_port = free_port()
            else:
                self._port = free_port()
            try:
                start()
            except ProcessError as error:
                if attempt == _ATTEMPTS or "address already in use" not in str(error):
                    raise
            else:
                return

    def _start_etcd(self) -> None:
        url = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{free_port()}"
        command = [
            str(self.binaries.path(ETCD)),
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
        ]
        self._run(ETCD, command)
        self._wait(ETCD, lambda: _answers(f"{url}/health"))

    def _start_apiserver(self) -> None:
        folder = self.folder
        command = [
            str(self.binaries.path(APISERVER)),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--advertise-address=10.255.255.1",
            f"--cert-dir={folder}",
            f"--tls-cert-file={folder / 'apiserver.crt'}",
            f"--tls-private-key-file={folder / 'apiserver.key'}",
            f"--client-ca-file={folder / 'ca.crt'}",
            f"--service-account-key-file={folder / 'service-account.pub'}",
            f"--service-account-signing-key-file={folder / 'service-account.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--api-audiences=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            *self._flags,
        ]
        self._run(APISERVER, command)
        self._wait(APISERVER, lambda: self.request("GET", "/readyz")[0] == 200)

    def _start_scheduler(self) -> None:
        kubeconfig = self.folder / "kubeconfig-scheduler"
        command = [str(self.binaries.path(SCHEDULER)), f"--kubeconfig={kubeconfig}", "--leader-elect=false"]
        self._run(SCHEDULER, [*command, "--secure-port=0"])

    def _run(self, program: str, command: list[str]) -> None:
        self.supervisor.start(program, command, log=self.folder / f"{program}.log")

    def _wait(self, program: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not ready():
            self.supervisor.check(program)
            if time.monotonic() > deadline:
                log = self.supervisor.log_end(program)
                raise ProcessError(f"{program} was not ready after {_START_SECONDS:.0f} s; the end of its log:\n{log}")
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        context.load_cert_chain(self.folder / "admin.crt", self.folder / "admin.key")
        return context

    def _etcd(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._etcd_port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            decoded: dict[str, Any] = json.load(answer)
            return decoded


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, http.client.HTTPException):
        return False


def _write_private(path: Path, content: bytes) -> None:
    """Only the owner may read it, from the first byte on."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def main() -> int:
    """Start a control plane, print its kubeconfig and stay until somebody ends it."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: ended.set())
    try:
        with RealCluster() as cluster:
            sys.stdout.write(f"export KUBECONFIG={cluster.kubeconfig}\n")
            sys.stdout.write(f"# {cluster.server} is ready; Ctrl-C ends it and removes its state\n")
            sys.stdout.flush()
            ended.wait()
    except FlyballError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

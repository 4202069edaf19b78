"""A whole cluster in one object: API server, storage and front doors, started and stopped together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from flyball.clock import Clock, RealClock
from flyball.controlplane.apiserver.admission import built_in
from flyball.controlplane.apiserver.authn import Authenticator
from flyball.controlplane.apiserver.builtin import builtin_kinds, message_of
from flyball.controlplane.apiserver.core import Core
from flyball.controlplane.apiserver.kinds import Kinds
from flyball.controlplane.apiserver.protobuf import ProtobufReader
from flyball.controlplane.apiserver.request import User
from flyball.controlplane.apiserver.server import ApiServer
from flyball.controlplane.apiserver.store import Limits, MemoryStorage, Snapshot, SqliteStorage, Store
from flyball.controlplane.apiserver.tokens import Tokens
from flyball.controlplane.bootstrap import ADMIN, bootstrap
from flyball.controlplane.controllers import NAMES, Controllers
from flyball.controlplane.inprocess import InProcess

if TYPE_CHECKING:
    from flyball.controlplane.apiserver.http import HttpDoor
    from flyball.controlplane.kubeconfig import Access
    from flyball.controlplane.pki import Keys

__all__ = ["EmbeddedCluster"]


class EmbeddedCluster:
    """An API server with its objects, in this process.

    In memory, or with `data` in an SQLite file from which it starts again; its keys lie beside it. `transport` reaches
    it without a network, `door` over TLS.
    """

    def __init__(
        self,
        *,
        data: Path | None = None,
        clock: Clock | None = None,
        controllers: bool | Collection[str] = True,
        limits: Limits | None = None,
    ) -> None:
        """Load what the file holds; nothing is served before `start`.

        `controllers` may name those that shall run (`flyball.controlplane.controllers.NAMES`).
        """
        self._data = data
        self._stopped = False
        self.clock: Clock = clock if clock is not None else RealClock()
        storage = SqliteStorage(data) if data is not None else MemoryStorage()
        self.store = Store(storage, clock=self.clock, limits=limits)
        self.core = Core(self.store, Kinds(builtin_kinds()), self.clock, admit=built_in())
        self.server = ApiServer(self.core, Authenticator(), protobuf=ProtobufReader(message_of))
        self.server.tokens = Tokens(self.core, lambda: self.keys.accounts)
        self.server.authenticator.readers.append(self.server.tokens.read)
        self.controllers = self._controllers(controllers)

    async def start(self, port: int = 6443) -> None:
        """Create the objects that every cluster has."""
        await bootstrap(self.server, port)
        await self.server.definitions.settle()
        await self.controllers.start()

    def _controllers(self, wanted: bool | Collection[str]) -> Controllers:
        """Make the control loops, each with a user of its own."""
        names: Collection[str] = (NAMES if wanted else ()) if isinstance(wanted, bool) else wanted

        def transport(name: str) -> InProcess:
            user = f"system:serviceaccount:kube-system:{name}"
            return InProcess(self.server, User(user, ("system:serviceaccounts", "system:authenticated")))

        def certificate() -> str:
            return self.keys.authority.certificate.decode()

        return Controllers(self.core, self.clock, transport, certificate, names)

    async def stop(self) -> None:
        """End all watches and streams, and close the storage. Stopping twice is harmless."""
        if not self._stopped:
            self._stopped = True
            await self.controllers.stop()
            await self.server.sessions.close()
            await self.store.close()

    def snapshot(self) -> Snapshot:
        """Remember everything that is stored."""
        return self.store.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot; watches end. Only for a cluster in memory."""
        self.store.restore(snapshot)
        self.controllers.relist()

    @property
    def transport(self) -> InProcess:
        """A way for Flyball's client to the API server, as the cluster's administrator."""
        return InProcess(self.server, ADMIN)

    @cached_property
    def keys(self) -> Keys:
        """The authority that signs certificates, and the key that signs tokens; kept where the data is kept."""
        from flyball.controlplane.pki import Keys

        return Keys.new() if self._data is None else Keys.kept(self._data.with_name(f"{self._data.name}.keys"))

    def door(self, *, host: str = "127.0.0.1", port: int = 0, remote: bool = False) -> HttpDoor:
        """Make a door over TLS, to be opened. Anything but loopback is refused unless `remote` allows it."""
        from flyball.controlplane.apiserver.http import HttpDoor
        from flyball.controlplane.pki import SERVER_HOSTS, server_context

        authority = self.keys.authority
        hosts = dict.fromkeys((*SERVER_HOSTS, *(() if host in ("0.0.0.0", "::") else (host,))))  # noqa: S104
        tls = server_context(authority.server(list(hosts)), authority.certificate)
        return HttpDoor(self.server, host=host, port=port, tls=tls, remote=remote)

    def access(
        self, url: str, user: str = ADMIN.name, groups: Sequence[str] = ADMIN.groups[:1], *, name: str = "flyball"
    ) -> Access:
        """Give the way in over TLS for a user, who is authenticated by a certificate."""
        from flyball.controlplane.kubeconfig import Access

        pair = self.keys.authority.client(user, groups)
        return Access(url, self.keys.authority.certificate, pair.certificate, pair.key, name=name)

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        await self.stop()

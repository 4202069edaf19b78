"""Small files that others replace while we run: tokens, certificates, keys."""

from __future__ import annotations

import logging
from pathlib import Path

from flyball.clock import Clock
from flyball.errors import CredentialError

__all__ = ["RotatingFile"]

log = logging.getLogger(__name__)


class RotatingFile:
    """The bytes of a file, read again when the file changes.

    Guarantees: the file is looked at no more than once in `every` seconds unless the reader insists; a file that cannot
    be read for a while (it is just being replaced) leaves the last good content in force and says so in the log; a file
    that never could be read is a `CredentialError`. Only `stat` and the read touch the disk.
    """

    __slots__ = ("_checked", "_clock", "_content", "_every", "_remedy", "_seen", "path", "what")

    def __init__(
        self, what: str, path: str | Path, clock: Clock, *, every: float = 1.0, remedy: str = "check the path"
    ) -> None:
        """`what` is what the file is called in messages: `token file`."""
        self.what = what
        self.path = Path(path)
        self._clock = clock
        self._every = every
        self._remedy = remedy
        self._content: bytes | None = None
        self._seen: tuple[int, int, int] | None = None
        self._checked = 0.0

    def read(self, *, insist: bool = False) -> bytes:
        """What the file holds; `insist` looks at it even if somebody just did."""
        now = self._clock.monotonic()
        if self._content is not None and not insist and now - self._checked < self._every:
            return self._content
        self._checked = now
        try:
            self._look()
        except OSError as error:
            self._missed(error)
        return self._content or b""

    def _look(self) -> None:
        found = self.path.stat()
        seen = (found.st_mtime_ns, found.st_size, found.st_ino)
        if seen != self._seen:
            self._content = self.path.read_bytes()
            self._seen = seen

    def _missed(self, error: OSError) -> None:
        why = _why(error)
        if self._content is None:
            raise CredentialError(f"{self.what} {self.path}: {why}; {self._remedy}") from None
        if self._seen is not None:
            log.warning("%s %s: %s; keeping what was read before", self.what, self.path, why)
        self._seen = None


def _why(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, PermissionError):
        return "not readable by this user"
    if isinstance(error, IsADirectoryError):
        return "it is a directory"
    return f"cannot be read: {error.strerror or error}"

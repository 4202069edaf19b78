"""Files that hold secrets."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

__all__ = ["write_private"]


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read; who reads it sees the old content or the new one, whole."""
    path = Path(os.path.realpath(path))
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise

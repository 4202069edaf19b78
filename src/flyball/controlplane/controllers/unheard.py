"""What the API server warns a cluster's own controllers of, which nobody needs to hear."""

from __future__ import annotations

import logging

from flyball.client.server_warnings import ServerWarning

__all__ = ["unheard"]

_log = logging.getLogger("flyball.controllers")


def unheard(warning: ServerWarning) -> None:
    """Note a warning for those who look closely: controllers use deprecated kinds because others still do."""
    _log.debug("%s", warning)

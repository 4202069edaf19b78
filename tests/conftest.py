"""How the tests run everywhere: property tests do not judge the machine, and are the same for everybody in CI."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("flyball", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("flyball"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "flyball")

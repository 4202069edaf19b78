"""Load that lasts: `python -m tests.soak.apiserver --seconds 60`."""

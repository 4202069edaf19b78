"""Runs the operator: `python -m simplejob`, or `flyball run simplejob` in the project's folder."""

from __future__ import annotations

from flyball import run

from simplejob.controller import simplejob


def main() -> None:
    """Reconcile every SimpleJob, until stopped."""
    run(simplejob)


if __name__ == "__main__":
    main()

"""`python -m myownshell`: the operator as a process, with flags of its own beside those of every operator."""

import click
from flyball import run

from myownshell.controller import operator

OTHERS = "Every option of `flyball run` is one of this program, too."


@click.command(context_settings={"ignore_unknown_options": True, "show_default": True}, epilog=OTHERS)
@click.option("--restricted-pods", is_flag=True, envvar="MYOWNSHELL_RESTRICTED_PODS", help="Nobody is root in a shell.")
@click.option("--no-finalizer", is_flag=True, envvar="MYOWNSHELL_NO_FINALIZER", help="Do not close shells first.")
@click.argument("others", nargs=-1, type=click.UNPROCESSED, metavar="")
def main(restricted_pods: bool, no_finalizer: bool, others: tuple[str, ...]) -> None:
    """Keep shells open until Ctrl-C or SIGTERM."""
    run(operator(restricted_pods=restricted_pods, finalizer=not no_finalizer), args=others)


if __name__ == "__main__":
    main(prog_name="myownshell")

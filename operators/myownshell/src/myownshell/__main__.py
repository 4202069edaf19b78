"""`python -m myownshell`: the operator as a process, with flags of its own beside those of every operator."""

import click
from flyball import run

from myownshell.controller import operator


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
@click.option("--restricted-pods", is_flag=True, envvar="MYOWNSHELL_RESTRICTED_PODS")
@click.option("--no-finalizer", is_flag=True, envvar="MYOWNSHELL_NO_FINALIZER")
@click.argument("others", nargs=-1, type=click.UNPROCESSED)
def main(restricted_pods: bool, no_finalizer: bool, others: tuple[str, ...]) -> None:
    """Run the operator."""
    run(operator(restricted_pods=restricted_pods, finalizer=not no_finalizer), args=others)


if __name__ == "__main__":
    main()

"""`rnnbench repro`: the smallest programs that show a fault of a compiler."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.exit_status import FAILED, NONCONFORMING, OK
from rnnbench.cli.options import ENVIRONMENT_FOLDER
from rnnbench.cli.output import tell

if TYPE_CHECKING:
    from rnnbench.pipeline import Reproduced, Reproduction

_VERSIONS = ("listed", "newest", "here")


@click.command(short_help="Show a compiler's fault with its smallest program.")
@click.argument("names", metavar="[NAME]…", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Run all of them.")
@click.option(
    "--versions",
    type=click.Choice(_VERSIONS),
    default="listed",
    show_default=True,
    help="Package versions: those that the program lists, the newest releases, or those of this environment.",
)
@ENVIRONMENT_FOLDER
def repro(names: tuple[str, ...], everything: bool, versions: str, environments: Path) -> None:
    """Print and run the smallest program that shows a fault, and say whether the fault is still there.

    Without a NAME, list the programs. They are in docs/upstream, each beside a report for the developers of the
    compiler, and do not import this suite.

    A program that compares two releases measures them in turn, and names an interval. The earlier release always has
    an environment of its own.

    Example: rnnbench repro iree-onnx-rnn-clip --versions=newest

    \b
    Exit status:
      0  every fault is still there
      1  a fault is mended
      3  a program gave no answer, or a fault is undecided
    """
    from rnnbench.pipeline import find_reproduction, reproductions

    if everything and names:
        raise click.UsageError("give NAMEs or --all, not both")
    if not names and not everything:
        for reproduction in reproductions():
            packages = _packages(reproduction.requirements, reproduction.earlier)
            tell(f"{reproduction.name}\n  {reproduction.title}\n  {packages}")
        return
    chosen = reproductions() if everything else [find_reproduction(name) for name in names]
    if not everything:
        for reproduction in chosen:
            tell(f"{reproduction.script}\n\n{reproduction.script.read_text(encoding='utf-8')}")
    sys.exit(status_of([_run_and_show(reproduction, versions, environments) for reproduction in chosen]))


def _run_and_show(reproduction: Reproduction, versions: str, environments: Path) -> Reproduced:
    """Run it, and say what was found. An environment that cannot be made is told as a fault whose state is unknown."""
    from rnnbench.pipeline import FaultState, Reproduced, SideError, earlier_environment, environment_of, reproduce

    try:
        python = (
            sys.executable
            if versions == "here"
            else environment_of(reproduction, environments, newest=versions == "newest")
        )
        reproduced = reproduce(reproduction, python, earlier_environment(reproduction, environments))
    except SideError as error:
        reproduced = Reproduced(FaultState.UNKNOWN, str(error))
    printed = reproduced.printed.replace("\n", "\n  ")
    with_versions = f": {_packages(reproduced.versions, reproduced.earlier)}" if reproduced.versions else ""
    tell(f"{reproduction.name}: {reproduced.state.value} (versions: {versions}{with_versions})\n  {printed}")
    return reproduced


def _packages(versions: Sequence[str], earlier: Sequence[str]) -> str:
    return " ".join(versions) + (f", beside {' '.join(earlier)}" if earlier else "")


def status_of(results: Sequence[Reproduced]) -> int:
    """The exit status: whether a fault is gone, or a script did not decide."""
    from rnnbench.pipeline import FaultState

    states = {result.state for result in results}
    if states & {FaultState.UNKNOWN, FaultState.UNDECIDED}:
        return FAILED
    return NONCONFORMING if FaultState.MENDED in states else OK

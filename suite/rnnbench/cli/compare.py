"""`rnnbench compare`: what changed from one run to another."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from rnnbench.cli.option_types import GivenPath
from rnnbench.cli.options import RESULTS, console, require_replaceable
from rnnbench.cli.output import tell_warnings, write_text_file

if TYPE_CHECKING:
    from rnnbench.results import Run

T = TypeVar("T")
_OUTPUT = GivenPath(dir_okay=False, allow_dash=True)
STDOUT = Path("-")


@click.command(short_help="Compare two runs: what changed, and which changes matter.")
@click.argument("base")
@click.argument("new")
@RESULTS
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="[KIND=]SHARE,…",
    help="The smallest change that matters: 5% or 0.05 for latencies, memory=20%,build=50% for other kinds (latency, "
    "build, memory, artifact, operations).  [default: 'compare:' of the case; there, 3%, 25%, 10%, 1%, 0%]",
)
@click.option(
    "--fail-on",
    "names",
    multiple=True,
    metavar="NAME,…",
    help="Changes that end with status 1: nonconforming, failed, unsupported, slower, vanished, checks, believed, "
    "support, lowered, build, memory, artifact, operations; all, none.  "
    "[default: nonconforming,failed,unsupported,slower]",
)
@click.option("--across-machines", is_flag=True, help="Compare runs of two machines, and mark every result.")
@click.option(
    "--markdown",
    metavar="FILE",
    type=_OUTPUT,
    help="Write a page for a pull request's comment; - is standard output.",
)
@click.option("--json", "as_json", metavar="FILE", type=_OUTPUT, help="Write all of it as JSON; - is standard output.")
def compare(
    base: str,
    new: str,
    results: Path,
    thresholds: tuple[str, ...],
    names: tuple[str, ...],
    across_machines: bool,
    markdown: Path | None,
    as_json: Path | None,
) -> None:
    """Compare two runs, trial by trial.

    Example: rnnbench compare main pull --fail-on slower,vanished

    Runs made at different times also differ by the drift of the machine; `rnnbench ab` avoids that.

    \b
    Exit status:
      0  nothing was found that --fail-on names
      1  something was found that --fail-on names
    """
    from rnnbench.reports import COMMENT_CHARACTERS, comparison_markdown, print_comparison
    from rnnbench.results import (
        Store,
        StoreError,
        compare_runs,
        compared_record,
        comparison_json,
        parse_fail_on,
        parse_thresholds,
    )

    if markdown == as_json == STDOUT:
        raise click.UsageError("--markdown and --json cannot both be written to standard output; name a file")
    _check_files({"--markdown": markdown, "--json": as_json})
    chosen_thresholds = _parsed(parse_thresholds, thresholds, "--threshold")
    fail_on = _parsed(parse_fail_on, names, "--fail-on") if names else None
    store = Store(results)
    base_run, new_run = (store.read(run, compared_record) for run in (base, new))
    if base_run.info == new_run.info and base_run.records == new_run.records:
        raise StoreError(
            f"{base} and {new} are one run, {base_run.name}: nothing can differ; name another run, or compare this "
            f"environment with itself by `rnnbench ab CASE`"
        )
    gc.freeze()  # Records have no cycles; looking for some, again and again, takes a fifth of the time.
    if base_run.by_trial.keys().isdisjoint(new_run.by_trial):
        tell_warnings(warning for run in (base_run, new_run) for warning in run.warnings)
        raise StoreError(f"{base} and {new} have no trial in common; {_what_to_compare(base_run, new_run)}")
    comparison = compare_runs(base_run, new_run, chosen_thresholds, across_machines=across_machines, fail_on=fail_on)
    if STDOUT not in (markdown, as_json):
        print_comparison(comparison, console())
    if markdown is not None:
        _write(markdown, comparison_markdown(comparison, COMMENT_CHARACTERS), "--markdown")
    if as_json is not None:
        _write(as_json, json.dumps(comparison_json(comparison), indent=1) + "\n", "--json")
    sys.exit(1 if comparison.regressed else 0)


def _what_to_compare(*runs: Run) -> str:
    if empty := next((run for run in runs if not run.records), None):
        return f"{empty.path} has no record that can be read"
    return "compare two runs of the same case"


def _parsed(parse: Callable[[Iterable[str]], T], texts: tuple[str, ...], option: str) -> T:
    try:
        return parse(texts)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from error


def _check_files(targets: Mapping[str, Path | None]) -> None:
    """Refuse a file of a run, and one file for both outputs."""
    files = {option: file for option, file in targets.items() if file is not None and file != STDOUT}
    for option, file in files.items():
        require_replaceable(file, option)
    if len({os.path.realpath(file) for file in files.values()}) < len(files):
        raise click.UsageError("--markdown and --json name one file; name two")


def _write(target: Path, text: str, option: str) -> None:
    if target == STDOUT:
        click.echo(text, nl=False)
        return
    write_text_file(option.removeprefix("--"), target, text, option)

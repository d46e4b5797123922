"""A run shows its current trial: by a bar in a terminal, in a pipe by a line where it would be silent for long."""

from __future__ import annotations

import re
import sys
from io import StringIO
from threading import Event

import fake_records as fake
import pytest
from harness_trials import make_trial
from rich.console import Console
from waiting import PATIENCE_S

from rnnbench.pipeline import progress
from rnnbench.worker import helper_program, run_helper
from rnnbench.worker.launcher import waited


def shown(console: Console, output: StringIO) -> str:
    with progress.ProgressBar(console, 2) as bar:
        for chunk in (2, 4):
            bar.stage(make_trial(chunk=chunk), "build")
    return output.getvalue()


def test_a_pipe_gets_a_line_with_the_current_trial_after_a_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENCE_S", 0.0)
    output = StringIO()
    lines = shown(Console(file=output, width=110), output).splitlines()
    assert [line.partition("  ")[2] for line in lines if line.strip()][:2] == [
        "trial 1 of 2, build: fake:honest looped-stitched h4 c2",
        "trial 2 of 2, build: fake:honest looped-stitched h4 c4",
    ]


def test_a_pipe_gets_no_line_without_a_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENCE_S", float("inf"))
    output = StringIO()
    assert "build" not in shown(Console(file=output, width=110), output)


def test_a_pipe_is_told_again_what_goes_on_while_the_suite_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One build may take an hour: no stage follows."""
    output = StringIO()
    with progress.ProgressBar(Console(file=output, width=110), 2) as bar:
        waited()
        bar.stage(make_trial(chunk=2), "build")
        bar.stage(make_trial(chunk=4), "check")
        monkeypatch.setattr(progress, "SILENCE_S", 0.0)
        bar.finished(fake.record().model_copy(update={"trial": make_trial(chunk=4).id}))
        waited()
        monkeypatch.setattr(progress, "SILENCE_S", float("inf"))
        waited()
    waited()
    lines = [line.partition("  ")[2] for line in output.getvalue().splitlines() if " of 2, " in line]
    assert lines == ["trial 1 of 2, build: fake:honest looped-stitched h4 c2"], "the other one has ended"


def test_what_takes_long_is_said_at_once_and_again_while_a_helper_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SILENCE_S", 0.0)
    monkeypatch.setattr(helper_program, "WAIT_POLL_S", 0.01)
    with progress.told_again("installing x"):
        run_helper([sys.executable, "-c", "import time; time.sleep(0.2)"], PATIENCE_S)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "installing x"
    assert {line.partition("  ")[2] for line in told[1:]} == {"installing x"}, "at whatever time"


def test_long_work_of_this_process_is_said_again_and_short_work_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.told_if_long("joining files"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "SILENCE_S", 0.01)
    said = Event()
    monkeypatch.setattr(progress, "visible", lambda text: said.set() or text)
    with progress.told_if_long("joining files"):
        assert said.wait(PATIENCE_S)
    assert set(capsys.readouterr().err.splitlines()) == {"0:00:00  joining files"}
    said.clear()
    assert not said.wait(0.05), "it has ended"


def test_a_terminal_of_80_columns_shows_the_current_trial() -> None:
    output = StringIO()
    console = Console(file=output, width=80, force_terminal=True, color_system=None, legacy_windows=False)
    assert "trial 2, build: fake:honest looped-stitched" in shown(console, output)


def test_a_terminal_counts_a_trial_as_soon_as_it_has_ended() -> None:
    output = StringIO()
    with progress.ProgressBar(Console(file=output, width=80, force_terminal=True, color_system=None), 2) as bar:
        bar.finished(fake.record())
        assert "1/2" in output.getvalue()


def test_in_a_narrow_terminal_a_trial_has_its_figure_whole_and_its_id_in_a_line_of_its_own() -> None:
    output = StringIO()
    record = fake.record()
    with progress.ProgressBar(Console(file=output, width=60), 1) as bar:
        bar.finished(record)
    figure, identity, *_bar = (line.rstrip() for line in output.getvalue().splitlines() if line.strip())
    assert re.fullmatch(r"ok +[\d.]+ µs/step", figure)
    assert identity == record.trial.rpartition("-")[0].partition("/")[2]

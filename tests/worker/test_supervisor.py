"""A supervisor waits for the end of the suite, whatever happened to the one before it."""

from __future__ import annotations

import subprocess

import pytest

from rnnbench.worker import supervisor


@pytest.fixture
def none_yet(monkeypatch):
    monkeypatch.setattr(supervisor, "_supervisor", None)
    yield
    supervisor._supervisor.close()


def test_one_that_is_killed_while_it_starts_is_started_again(none_yet, monkeypatch):
    run, starts = subprocess.run, []

    def killed_once(command, **options):
        starts.append(command)
        if len(starts) == 1:
            raise subprocess.CalledProcessError(-15, command)
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", killed_once)
    supervisor.supervise()
    assert len(starts) == 2
    assert supervisor._supervisor.is_alive

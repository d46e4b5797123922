"""A supervisor waits for the end of the suite, whatever happened to the one before it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import uuid

import pytest
from alone import alone
from waiting import PATIENCE_S, wait_until

from rnnbench.worker import supervisor


@pytest.fixture
def none_yet(monkeypatch):
    """It ends nothing that other tests have started or start soon: it looks for a mark that none of that has."""
    monkeypatch.setattr(supervisor, "_supervisor", None)
    monkeypatch.setattr(supervisor, "SUITE", uuid.uuid4().hex)
    yield
    if supervisor._supervisor is not None:
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


@pytest.mark.parametrize(
    ("status", "number", "told"),
    [
        (errno.EAGAIN, errno.EAGAIN, os.strerror(errno.EAGAIN)),
        (-signal.SIGKILL, errno.ENOMEM, "the process that cleans up behind this command died of SIGKILL, 3 times"),
        (1, errno.ENOMEM, "the process that cleans up behind this command exited with status 1, 3 times"),
    ],
)
def test_where_none_starts_the_error_is_that_of_a_limit(none_yet, monkeypatch, tmp_path, status, number, told):
    def ended(command, **options):
        raise subprocess.CalledProcessError(status, command)

    monkeypatch.setattr(subprocess, "run", ended)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(OSError, match=told) as raised:
        supervisor.supervise()
    assert raised.value.errno == number
    assert not [*tmp_path.iterdir()]


def test_its_program_ends_with_the_error_of_its_fork():
    without = "import os\ndef fork(): raise BlockingIOError(11, 'no')\nos.fork = fork\n"
    command = [sys.executable, "-I", "-S", "-c", without + supervisor._PROGRAM]
    assert subprocess.run(command, timeout=PATIENCE_S).returncode == errno.EAGAIN


WAYS = {
    "a folder": "from rnnbench.worker import own_folder\nwith own_folder(): os.kill(os.getpid(), signal.SIGKILL)",
    "rows": (
        "from rnnbench.results import parquet\n"
        "def rows():\n"
        "    yield {'a': 1}\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "parquet({'a': 'BIGINT'}, rows(), 'this')"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_process_leaves_no_temporary_file(tmp_path, monkeypatch, way):
    if way == "rows":
        pytest.importorskip("duckdb")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("RNNBENCH_USERS_TMPDIR", raising=False)
    code = f"import os, signal\n{WAYS[way]}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_until(lambda: not list(tmp_path.iterdir()), "a temporary file is left")


SUPERVISE = "from rnnbench.worker import supervisor\nsupervisor.supervise()\n"
KILLS = {"before the end": f"{SUPERVISE}kill()", "in its last moments": f"atexit.register(kill)\n{SUPERVISE}"}
"""Python calls first what was registered last: the second one kills it after all that the suite does at its end."""


@pytest.mark.parametrize("when", KILLS)
def test_a_kill_of_it_at_any_moment_leaves_nothing(tmp_path, monkeypatch, when):
    """Nobody else would remove its folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("RNNBENCH_USERS_TMPDIR", raising=False)
    code = (
        "import atexit, psutil, time\n"
        "def kill():\n"
        "    for one in psutil.process_iter(['cmdline']):\n"
        "        if supervisor.SUITE in (one.info['cmdline'] or ()):\n"
        "            one.kill()\n"
        f"    until = time.monotonic() + {PATIENCE_S}\n"
        "    while supervisor._supervisor.is_alive and time.monotonic() < until:\n"
        "        time.sleep(0.01)\n"
    )
    code += KILLS[when]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    wait_until(lambda: not list(tmp_path.iterdir()), "the folder of the killed one is left")


def test_a_fork_has_a_mark_and_a_supervisor_of_its_own(none_yet):
    """Else the end of one process would kill the workers of the other."""
    supervisor.supervise().remove()
    first, mark = supervisor._supervisor, supervisor.suite_mark()

    def forked():
        before = supervisor._supervisor
        supervisor.supervise().remove()
        return before, supervisor.suite_mark(), supervisor._supervisor.temporary.path

    before, of_fork, folder = alone(forked)
    assert before is None
    assert of_fork != mark == supervisor.suite_mark()
    assert folder != first.temporary.path
    wait_until(lambda: not folder.exists(), "its supervisor did not see its end")
    assert first.is_alive


def test_a_fork_that_lives_on_keeps_no_supervisor_from_seeing_the_end(none_yet):
    folder = supervisor.supervise()
    waits, ends = os.pipe()
    if (child := os.fork()) == 0:
        os.close(ends)
        os.read(waits, 1)
        os._exit(0)
    supervisor._supervisor.close()
    supervisor._supervisor = None
    wait_until(lambda: not folder.path.exists(), "the supervisor waits for the fork")
    for end in (waits, ends):
        os.close(end)
    os.waitpid(child, 0)


def test_a_folder_of_this_process_is_gone_once_it_is_left(none_yet):
    with supervisor.own_folder() as folder:
        (folder / "log").write_text("said")
        assert folder.is_relative_to(supervisor._supervisor.temporary.path)
    assert not list(supervisor._supervisor.temporary.path.iterdir())


def test_a_folder_that_something_removed_is_made_again_for_what_is_started_next(none_yet):
    supervisor.supervise().remove()
    supervisor._supervisor.temporary.remove()
    assert supervisor.supervise().path.parent == supervisor._supervisor.temporary.path

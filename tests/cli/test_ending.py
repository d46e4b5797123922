"""However a command ends: a sentence, its exit status, every finished record, and no process left."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from killed_runs import fork, kill_and_resume, left_of, records, start
from quick_tests import for_proof
from waiting import PATIENCE_S, wait_until

from rnnbench.cli import ending
from rnnbench.cli.ending import end_well
from rnnbench.results import StoreError

RUN = ("run", "tiny.yaml", "--backend=fake:honest", "--no-baseline", "--filter=chunk=2", "--processes=1")
ONE_TRIAL = (*RUN, "--filter=chunk=2,state=stitched")
AB = ("ab", "tiny.yaml", "--backend=fake:honest", "--filter=chunk=2,state=stitched", "--budget=10ms")
STOPPED_IN = {
    "the report": "import rnnbench.reports as room; name = 'write_report'",
    "the summary": "import rnnbench.reports as room; name = 'print_summary'",
    "the beginning": "import rnnbench.cases as room; name = 'load_case'",
}
WAITS_ONCE_A_RECORD_IS_WRITTEN = """
import os, time
import rnnbench.pipeline.record as room
append, here = room.append_record, os.environ["RNNBENCH_TEST_FOLDER"]
def append_and_wait(*arguments):
    append(*arguments)
    open(here + "/written", "w").close()
    while not os.path.exists(here + "/filled"):
        time.sleep(0.01)
room.append_record = append_and_wait
"""
WAIT = """
import os, time
def wait():
    for _ in range(6000):
        time.sleep(0.1)
"""
"""Many short sleeps. Python answers a signal that comes just before a sleep begins only once that sleep has ended."""
STOP = (
    WAIT
    + """
stopped = getattr(room, name)
def stop(*arguments, **options):
    open(os.environ["RNNBENCH_TEST_FOLDER"] + "/reached", "w").close()
    wait()
setattr(room, name, stop)
"""
)


@pytest.mark.parametrize(
    ("where", "number"),
    [("the report", signal.SIGTERM), *for_proof(("the summary", signal.SIGINT)), ("the beginning", signal.SIGHUP)],
)
def test_a_signal_at_any_moment_ends_with_130_and_one_line(folder, where, number):
    default = partial(signal.signal, number, signal.SIG_DFL)
    process = fork(folder, *ONE_TRIAL, code=STOPPED_IN[where] + STOP, preexec_fn=default)
    wait_until((folder / "reached").exists, "it never came there", process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert len(errors.split("Interrupted.")) == 2
    assert len(errors.strip().splitlines()) == 1, errors
    assert ("has 1 finished trial" in errors) == (where != "the beginning")
    wait_until(lambda: not left_of(folder), "a worker outlived the suite")


@pytest.mark.parametrize(("handler", "status"), [(signal.SIG_IGN, 7), (signal.SIG_DFL, 130)], ids=["nohup", "plain"])
def test_the_end_of_a_terminal_ends_a_command_unless_it_is_ignored(handler, status, capsys):
    def command(ending):
        os.kill(os.getpid(), signal.SIGHUP)
        return 7

    before = signal.signal(signal.SIGHUP, handler)
    try:
        with pytest.raises(SystemExit) as ended:
            end_well(command)
        assert signal.getsignal(signal.SIGHUP) == handler
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0), "it would end what called the command"
    finally:
        signal.signal(signal.SIGHUP, before)
    assert ended.value.code == status
    assert capsys.readouterr().err == ("" if status == 7 else "Interrupted.\n")


def test_an_interrupt_that_a_library_makes_its_own_error_of_is_an_interrupt(capsys):
    """Pydantic's core was seen to: `SchemaError: … KeyboardInterrupt`."""

    def command(ending):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt as error:
            raise ValueError("error building a schema: KeyboardInterrupt") from error

    with pytest.raises(SystemExit) as ended:
        end_well(command)
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Interrupted.\n"


@pytest.mark.parametrize("where", ["_mistake", "_say"])
def test_an_interrupt_while_a_mistake_is_told_ends_with_130_too(monkeypatch, capsys, where):
    """A bisection was seen to end with a traceback, by SIGINT: it had found no slower release as the signal came."""
    told, times = getattr(ending, where), []

    def interrupted(what):
        times.append(what)
        if len(times) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return told(what)

    def command(_):
        raise StoreError("no run")

    monkeypatch.setattr(ending, where, interrupted)
    with pytest.raises(SystemExit) as ended:
        end_well(command)
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Interrupted.\n"


@pytest.mark.parametrize(
    ("most", "command"), [*for_proof((20, ("list", "tiny.yaml"))), (10, ONE_TRIAL)], ids=["list", "run"]
)
def test_a_limit_of_open_files_ends_a_command_with_a_sentence(folder, most, command):
    """The sentence needs modules that are not imported yet, and no further file can be opened."""
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (most, most))
    process = start(folder, *command, preexec_fn=limit)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert errors.startswith(
        "rnnbench: a limit of this machine or of its user is reached: Too many open files; raise it"
    )
    assert errors.count("\n") == 1


def _library_that_is_not_mapped() -> None:
    """As NumPy tells it: an error of its own, after that of the loader."""
    try:
        raise ImportError("libscipy_openblas.so: failed to map segment from shared object")
    except ImportError as error:
        raise ImportError("Importing the numpy C-extensions failed.") from error


def _no_memory() -> None:
    raise MemoryError


@pytest.mark.parametrize("fail", [_no_memory, _library_that_is_not_mapped])
@pytest.mark.parametrize("imports", [True, False], ids=["imports", "imports nothing more"])
def test_a_command_without_memory_ends_with_a_sentence(monkeypatch, capfd, fail, imports):
    """As under `ulimit -v 200000`. Status 1 would say that something is nonconforming."""

    def tell(*_, **__):
        raise MemoryError

    if not imports:
        monkeypatch.setattr(ending, "tell", tell)
    with pytest.raises(SystemExit) as ended:
        end_well(lambda _: fail())
    assert ended.value.code == 2
    assert capfd.readouterr().err == (
        "rnnbench: there is no memory for this command; raise its limit (`ulimit -v`, or that of the container), or "
        "end other programs\n"
    )


def test_an_import_that_fails_for_another_reason_is_a_traceback():
    with pytest.raises(ImportError, match="cannot import name"):
        end_well(lambda _: exec("from os import nothing_of_this_name"))


def without_a_reader() -> None:
    """Make standard output a pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)
    os.close(writer)


def test_a_run_whose_reader_has_gone_says_how_it_is_continued(folder):
    """As in `rnnbench run … | head -1`."""
    process = fork(folder, *RUN, preexec_fn=without_a_reader)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    (run,) = (folder / "results").iterdir()
    assert errors == (
        f"Interrupted: nobody reads the output any more. results/{run.name} has 1 finished trial. "
        f"To continue: rnnbench run --resume results/{run.name}\n"
    )


@pytest.mark.parametrize(
    ("begin", "command"),
    [*for_proof((start, ("list", "tiny.yaml"))), (fork, ("schema",)), (fork, ("--help",)), (fork, ("run", "--help"))],
    ids=["list", "schema", "help", "run help"],
)
def test_a_short_command_whose_reader_has_gone_ends_as_git_does(folder, begin, command):
    """As in `rnnbench list CASE | head`. Status 1 would say that something is nonconforming, and 0 that nothing is."""
    process = begin(folder, *command, preexec_fn=without_a_reader)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (141, "")


def test_without_proc_a_command_ends_with_a_sentence(capsys):
    """As in a sandbox that does not mount it."""

    def command(_):
        Path("/proc/nowhere").read_bytes()

    with pytest.raises(SystemExit) as ended:
        end_well(command)
    assert ended.value.code == 2
    assert "cannot use /proc/nowhere: No such file or directory; mount /proc: " in capsys.readouterr().err


@pytest.mark.parametrize(("module", "arguments"), [("pydantic", ["list", "cases/smoke.yaml"]), ("click", ["--help"])])
def test_a_missing_package_of_the_suites_own_ends_a_command_with_a_sentence(module, arguments):
    """pydantic is imported by the command, click by the command line itself."""
    script = f"import sys; sys.modules[{module!r}] = None; from rnnbench.__main__ import main; main()"
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("rnnbench: this installation is broken: ")
    assert line.endswith(f"-m pip install --force-reinstall {module}")


def test_a_folder_that_was_removed_under_a_command_ends_it_with_a_sentence(folder):
    gone = folder / "gone"
    gone.mkdir()
    process = start(folder, "report", "a", preexec_fn=lambda: (os.chdir(gone), gone.rmdir()))
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert errors == "rnnbench: the folder in which this command runs was removed; change to another one\n"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Symlink loop from 'x'"),
        FileNotFoundError(errno.ENOENT, "No such file or directory", "x"),
        OSError(errno.ENXIO, "No such device or address", "x"),
        OSError(errno.ENOTCONN, "Transport endpoint is not connected", "x"),
        OSError(errno.EINVAL, "Invalid argument", "x"),
    ],
    ids=["loop", "removed", "socket", "its program has ended", "a name that it cannot have"],
)
def test_a_path_that_leads_nowhere_ends_a_command_with_a_sentence(capsys, error):
    def command(_):
        raise error

    with pytest.raises(SystemExit) as ended:
        end_well(command)
    assert ended.value.code == 2
    assert "see what lies there and who may use it, or name another place" in capsys.readouterr().err


def test_an_error_of_the_system_that_is_of_no_file_is_a_traceback():
    def command(_):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    with pytest.raises(OSError, match="Bad file descriptor"):
        end_well(command)


def test_where_an_error_cannot_be_told_what_keeps_it_from_that_is_told(monkeypatch, capsys):
    """As where /proc is empty: an import of what knows the error fails."""
    monkeypatch.setitem(sys.modules, "rnnbench.fleet", _NoProc("rnnbench.fleet"))

    def command(_):
        raise StoreError("no run")

    with pytest.raises(SystemExit) as ended:
        end_well(command)
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "rnnbench: cannot use /proc/meminfo: No such file or directory; mount /proc: rnnbench reads there what the "
        "kernel says of the machine and of processes\n"
    )


class _NoProc(ModuleType):
    def __getattr__(self, name):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/proc/meminfo")


def test_a_limit_of_threads_is_told_as_one_of_processes_is(capsys):
    def command(_):
        raise RuntimeError("can't start new thread")

    with pytest.raises(SystemExit) as ended:
        end_well(command)
    assert ended.value.code == 2
    assert "is reached: Resource temporarily unavailable; raise it" in capsys.readouterr().err


def test_a_machine_without_a_folder_for_temporary_files_is_told_with_what_helps(capsys):
    """As where its only disk is full."""

    def command(_):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp', '/var/tmp']")

    with pytest.raises(SystemExit) as ended:
        end_well(command)
    assert ended.value.code == 2
    assert "found in ['/tmp', '/var/tmp']; free space on the disk of one of them, or" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "does", "told"),
    [
        (errno.ENOSPC, "write", "free space on its disk, or"),
        (errno.EROFS, "write", "make its disk writable, or"),
        (errno.EFBIG, "write", "raise the limit of a file's size (`ulimit -f`), or"),
        (errno.EIO, "use", "see whether its disk is broken, or"),
        (errno.ESTALE, "use", "see whether its disk is broken, or"),
        (errno.EUCLEAN, "use", "see whether its disk is broken, or"),
    ],
)
def test_a_disk_that_cannot_be_used_is_told_with_what_helps(capsys, number, does, told):
    def command(_):
        raise OSError(number, os.strerror(number), "x")

    with pytest.raises(SystemExit) as ended:
        end_well(command)
    assert ended.value.code == 2
    assert f"rnnbench: cannot {does} x: {os.strerror(number)}; {told} choose another one" in capsys.readouterr().err


def test_an_interrupt_within_code_from_a_text_ends_with_130_too(tmp_path):
    """CPython notes it, and would end `python -m` by SIGINT though somebody caught it."""
    code = "from rnnbench.cli.ending import end_well\nend_well(lambda ending: exec('raise KeyboardInterrupt'))\n"
    (tmp_path / "interrupted.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


AT_THE_END = """
import os, signal
class Last:
    def __del__(self, kill=os.kill, pid=os.getpid()):
        for number in (2, 15, 1):
            kill(pid, number)
last = Last()
"""


def test_a_signal_while_the_interpreter_ends_changes_nothing(folder):
    """As its modules are cleared: the command has printed everything."""
    process = start(folder, "list", "tiny.yaml", "--backend=fake:honest", code=AT_THE_END)
    shown, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (0, "4 trials\n")
    assert "fake:honest" in shown


AT_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *arguments):
        if name == os.environ["RNNBENCH_TEST_MODULE"]:
            os.kill(os.getpid(), signal.SIGTERM)
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("arguments", "module"),
    [
        (("report", "latest"), "click"),
        (("compare", "latest", "latest"), "rnnbench.results.compare"),
        (("list", "tiny.yaml"), "numpy"),
    ],
    ids=str,
)
def test_a_signal_while_a_command_imports_ends_it_with_130_and_one_line(folder, monkeypatch, arguments, module):
    monkeypatch.setenv("RNNBENCH_TEST_MODULE", module)
    process = start(folder, *arguments, code=AT_IMPORT)
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output, errors.strip()) == (130, "", "Interrupted.")


@pytest.mark.proof
def test_a_signal_at_the_end_of_a_comparison_says_where_its_trials_are(folder):
    process = fork(folder, *AB, code="import rnnbench.reports as room; name = 'write_comparison'" + STOP)
    wait_until((folder / "reached").exists, "it never came there", process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    (line,) = errors.strip().splitlines()
    assert line.startswith("Interrupted. Finished trials are in ")
    assert [record["outcome"] for record in records(folder)] == ["ok", "ok"]


@pytest.mark.proof
def test_a_comparison_in_progress_is_not_resumed_and_leaves_no_worker(folder, rnnbench):
    process = fork(folder, *AB[:2], "--backend=fake:build-hangs", "--budget=10ms")
    try:
        wait_until(lambda: list(folder.glob("results/[!.]*/logs/*.log")), "no worker", process)
        for run in folder.glob("results/*-[ab]"):
            errors = rnnbench("run", "--resume", run.name, status=2).stderr
            assert f"is in progress: process {process.pid} on " in errors
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    wait_until(lambda: not left_of(folder), "a worker outlived the suite")


def test_a_signal_that_a_destructor_drops_comes_again(folder):
    code = f"""
{STOPPED_IN["the beginning"]}
{WAIT}
class Slow:
    def __del__(self):
        open(os.environ["RNNBENCH_TEST_FOLDER"] + "/reached", "w").close()
        wait()
def stop(*arguments, **options):
    Slow()
    wait()
setattr(room, name, stop)
"""
    process = fork(folder, "list", "tiny.yaml", code=code)
    wait_until((folder / "reached").exists, "it never came there", process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert errors.strip() == "Interrupted."


def test_a_second_signal_ends_a_command_that_is_slow_to_end(folder):
    code = """
import rnnbench.cli.ending as ending
def slow(sentence):
    open(os.environ["RNNBENCH_TEST_FOLDER"] + "/ending", "w").close()
    wait()
ending._say = slow
"""
    code += STOPPED_IN["the beginning"] + STOP
    process = fork(folder, "list", "tiny.yaml", code=code)
    wait_until((folder / "reached").exists, "it never came there", process)
    process.send_signal(signal.SIGTERM)
    wait_until((folder / "ending").exists, "it does not end", process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors.strip()) == (130, "")


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 3 MiB.

    Only root may mount one. Elsewhere `pipeline/test_record_on_disk.py` still tries a write that finds the disk full.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False, timeout=PATIENCE_S).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("tests may not mount a disk here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True, timeout=PATIENCE_S)


@pytest.mark.parametrize("command", ["run", *for_proof("ab")])
def test_a_full_disk_ends_a_run_with_a_sentence_status_2_and_every_finished_record(folder, small_disk, command):
    arguments = (command, "tiny.yaml", "--backend=fake:honest,fake:build-fails", f"--results={small_disk}")
    arguments += {
        "run": ("--filter=chunk=2", "--processes=1", "--no-baseline"),
        "ab": ("--budget=10ms", "--filter=chunk=2,state=stitched"),
    }[command]
    filler = small_disk / "filler"
    process = fork(folder, *arguments, code=WAITS_ONCE_A_RECORD_IS_WRITTEN)
    wait_until((folder / "written").exists, "no record", process)
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    (folder / "filled").touch()
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2, errors
    assert "Traceback" not in errors
    assert "No space left on device" in errors
    assert "finished trial" in errors.lower()
    wait_until(lambda: not left_of(folder), "a worker outlived the suite")
    run, *_ = small_disk.glob("*T*Z-*")
    kept = [json.loads(line)["trial"] for path in small_disk.glob("*/records.jsonl") for line in path.open()]
    assert kept, "whole lines only"
    if command == "run":
        filler.unlink()
        resumed = fork(folder, "run", "--resume", str(run))
        _, errors = resumed.communicate(timeout=PATIENCE_S)
        assert resumed.returncode == 3, errors
        lines = [json.loads(line) for line in (run / "records.jsonl").open()]
        assert not [one for one in lines if one["outcome"] not in ("ok", "build-failed")]
        assert len(lines) == len({one["trial"] for one in lines}) == 4


def test_a_file_that_cannot_grow_ends_a_run_as_a_full_disk_does(folder):
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (3000, 3000))
    process = fork(folder, *RUN, preexec_fn=limit)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2, errors
    assert "File too large" in errors
    assert "Traceback" not in errors
    assert "To continue: rnnbench run --resume" in errors
    assert all(record["outcome"] == "ok" for record in records(folder))


def test_a_run_in_progress_is_not_resumed(folder, rnnbench):
    process = fork(folder, "run", "tiny.yaml", "--backend=fake:build-hangs", "--no-baseline")
    try:
        wait_until(lambda: any(folder.glob("results/[!.]*/run.json")), "no run", process)
        errors = rnnbench("run", "--resume", "latest", status=2).stderr
        assert f"is in progress: process {process.pid} on " in errors
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not left_of(folder), "a worker outlived the suite")


HOLD = """
import os, time
import rnnbench.plan.run_plan as run_plan, rnnbench.results.journal as journal
append, write_info = journal._append, run_plan.write_info
def hold():
    open(os.environ["RNNBENCH_TEST_FOLDER"] + "/held", "w").close()
    time.sleep(600)
"""
HELD = {
    "between two records": """
def append_and_hold(*arguments):
    append(*arguments)
    hold()
journal._append = append_and_hold
""",
    "within a record": """
lines = []
def append_half(descriptor, line):
    lines.append(line)
    if len(lines) == 1:
        return append(descriptor, line)
    os.write(descriptor, line[:len(line) // 2])
    hold()
journal._append = append_half
""",
    "before its end is noted": """
def hold_at_the_end(folder, info):
    hold() if info.finished else write_info(folder, info)
run_plan.write_info = hold_at_the_end
""",
}
"""Where a command waits for its kill. That is no matter of time, so a slow machine kills it there too."""


def test_killed_at_any_moment_a_run_loses_no_record_and_leaves_no_process(folder):
    """Each kill is of the parent alone, which can do nothing about it. The next one resumes what it left.

    The proof in tests/benchmarks has 200 kills at random moments.
    """

    def wait(process):
        wait_until((folder / "held").exists, "it never came there", process)
        (folder / "held").unlink()

    codes = [*(HOLD + code for code in HELD.values()), ""]
    done = kill_and_resume(folder, (*RUN, "--backend=fake:honest,fake:build-fails"), len(HELD), wait, codes, fork)
    assert (done.kills, done.at_risk) == (len(HELD), len(HELD))
    assert done.with_workers >= 2, "of the last kill, workers have nothing to do any more"
    assert (done.lost, done.doubled, done.torn) == (0, 0, 0)
    assert (done.runs, done.records) == (1, 4)

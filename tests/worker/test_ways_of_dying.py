"""Whatever a worker does, it ends itself alone: the right outcome, the reason in words, and nobody waits for it.

How long after its limit a worker is gone is measured in `tests/benchmarks`. Here, one that was not killed would hang.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
from waiting import PATIENCE_S, has_ended, wait_until

from rnnbench.measure import memory_limit
from rnnbench.worker import Host, WorkerError, WorkerProcess, launcher, process_family, supervisor
from rnnbench.worker.commands import EndFork

BEGIN = """
import os, signal, socket, subprocess, sys, time
line = socket.socket(fileno=int(sys.argv[-1]))
line.recv(65536)
REPLY = b'{"number": 0, "reply": {"modules": []}}\\n'
"""


@pytest.fixture
def start(tmp_path):
    """Starts a script as a worker; it has the channel in `line`, and a right reply in `REPLY`."""
    workers = []

    def start_worker(script: str) -> WorkerProcess:
        (tmp_path / "odd_worker.py").write_text(BEGIN + script)
        host = Host(tmp_path / "worker.log", {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])})
        workers.append(WorkerProcess("odd_worker", EndFork(), host))
        return workers[-1]

    yield start_worker
    for worker in workers:
        worker.close()


def failure(worker: WorkerProcess, limit: float = 60.0) -> WorkerError:
    """What its first command ends with. The worker is gone by then."""
    worker.ready()
    with pytest.raises(WorkerError) as raised:
        worker.ask(EndFork(), limit)
    assert not raised.value.alive
    assert has_ended(worker.pid)
    return raised.value


LINE_END = b"\n"
UNFIT = {"number": 1, "failed": {"outcome": "run-failed", "reason": "unfit", "harmed": True}}
ANSWER_ONCE = "line.sendall(REPLY); line.recv(65536)\n"


@pytest.mark.parametrize(
    ("does", "limit", "outcome", "words"),
    [
        ("line.sendall(b'no JSON\\n'); time.sleep(3600)", 300, "crashed", "no reply to EndFork: JSONDecodeError"),
        ("line.sendall(b'[1]\\n'); time.sleep(3600)", 300, "crashed", "no reply to EndFork: TypeError: list"),
        (
            'line.sendall(b\'{"number": 1, "odd": 1}\\n\'); time.sleep(3600)',
            300,
            "crashed",
            "no reply to EndFork: KeyError",
        ),
        (
            'line.sendall(b\'{"number": 1, "reply": {}}\\n\'); time.sleep(3600)',
            300,
            "crashed",
            "modules: Field required",
        ),
        (
            'line.sendall(b\'{"number": 1, "reply": {"modules": 3}}\\n\'); time.sleep(3600)',
            300,
            "crashed",
            "modules: Input should",
        ),
        ('line.sendall(b\'{"number": 1, "failed": 3}\\n\'); time.sleep(3600)', 300, "crashed", "no reply to EndFork"),
        ("line.sendall(b'\\xff\\xfe\\n'); time.sleep(3600)", 300, "crashed", "no reply to EndFork"),
        (
            "line.sendall(b'[' * 100_000 + b'\\n'); time.sleep(3600)",
            300,
            "crashed",
            "no reply to EndFork: Recursion",
        ),
        (
            f"line.sendall({json.dumps(UNFIT).encode() + LINE_END!r}); time.sleep(3600)",
            300,
            "run-failed",
            "unfit",
        ),
        ("while True: line.send(b'x'); time.sleep(0.05)", 1, "timed-out", "no answer within 1 s"),
        ("os._exit(0)", 300, "crashed", "exited with status 0"),
        ("os._exit(7)", 300, "crashed", "exited with status 7"),
        ("sys.exit('enough')", 300, "crashed", "exited with status 1; its log ends: enough"),
        ("raise KeyboardInterrupt", 300, "crashed", "KeyboardInterrupt"),
        ("os.abort()", 300, "crashed", "died of SIGABRT"),
        ("os.kill(os.getpid(), 40)", 300, "crashed", "died of signal 40"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 300, "crashed", "died of SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGSTOP); time.sleep(3600)", 1, "timed-out", "a debugger had stopped it; killed"),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)", 1, "timed-out", "no answer within 1 s"),
    ],
)
def test_each_way_has_its_outcome_and_its_words(start, does, limit, outcome, words):
    error = failure(start(ANSWER_ONCE + does), limit)
    assert error.outcome == outcome
    assert words in error.reason


def test_a_worker_that_does_not_read_the_whole_of_its_first_command_is_timed_out(start, monkeypatch):
    monkeypatch.setattr(launcher, "START_LIMIT_S", 0.1)
    monkeypatch.setattr(launcher, "encode_command", lambda command: b"x" * (4 << 20))
    worker = start("time.sleep(3600)")
    with pytest.raises(WorkerError, match=r"no answer within 0\.1 s") as raised:
        worker.ready(0.1)
    assert raised.value.outcome == "timed-out"
    assert has_ended(worker.pid)


def test_a_worker_that_closes_its_channel_and_runs_on_is_killed(start, monkeypatch):
    monkeypatch.setattr(launcher, "EXIT_LIMIT_S", 0.1)
    error = failure(start(ANSWER_ONCE + "line.close(); time.sleep(3600)"), 300)
    assert (error.outcome, error.reason) == ("crashed", "closed its channel and ran on; killed")


def test_a_line_without_an_end_takes_no_more_memory_than_a_line_may_have(start, monkeypatch):
    worker = start(ANSWER_ONCE + "while True: line.sendall(b'x' * 65536)")
    worker._channel._max_line = 8 << 20
    before = psutil.Process().memory_info().rss
    error = failure(worker)
    assert (error.outcome, error.reason) == ("crashed", "its reply is longer than any reply may be; killed")
    assert psutil.Process().memory_info().rss - before < 64 << 20


def test_a_second_reply_that_nobody_asked_for_is_never_taken_for_the_next_one(start):
    worker = start(ANSWER_ONCE.replace("REPLY", "REPLY * 2", 1) + "time.sleep(3600)")
    assert failure(worker).reason == "it sent a message that was not requested; killed"


def test_a_worker_that_does_not_read_is_not_waited_for_longer_than_its_limit(start):
    worker = start("line.sendall(REPLY); time.sleep(3600)")
    worker.ready()
    fill = b"x" * (8 << 20)
    with pytest.raises(TimeoutError):
        worker._channel.send(fill, 0.5)


def test_only_a_kill_that_the_kernel_counted_is_for_want_of_memory(start, monkeypatch, tmp_path):
    """The counter of the control group is a file of the test's own, which the worker writes to before it dies."""
    events = tmp_path / "memory.events"
    events.write_text("low 0\noom 3\noom_kill 3\n")
    monkeypatch.setattr(process_family, "_memory_events", lambda: iter([events]))
    dies = "os.kill(os.getpid(), signal.SIGKILL)"
    error = failure(start(ANSWER_ONCE + dies))
    assert error.outcome == "crashed"
    counted = f"open({str(events)!r}, 'w').write('oom_kill 4'); "
    error = failure(start(ANSWER_ONCE + counted + dies))
    assert error.outcome == "out-of-memory"
    assert f"the kernel's out-of-memory killer ended it, {memory_limit()}" in error.reason
    events.write_text("oom_kill 4")
    error = failure(start(ANSWER_ONCE + counted.replace("4'", "5'") + "os._exit(9)"))
    assert error.outcome == "crashed"


@pytest.mark.parametrize(
    "grows", ["kept = b'x' * (600 << 20)", "os.fork() or globals().update(kept=b'x' * (600 << 20))"]
)
def test_the_limit_of_memory_holds_while_a_worker_starts(start, grows):
    worker = start(f"{grows}; time.sleep(3600)")
    with pytest.raises(WorkerError, match="over its limit of 300 MiB; killed") as raised:
        worker.ready(60, 300 << 20)
    assert raised.value.outcome == "out-of-memory"


def test_pages_that_a_child_shares_count_once(start):
    """As where a worker starts a program: for that it is forked, and both have its pages for a moment."""
    shares = "kept = b'x' * (200 << 20); os.fork() or time.sleep(3600); "
    worker = start(shares + ANSWER_ONCE + "time.sleep(3600)")
    worker.ready(60, 300 << 20)
    assert worker.resident(look=True) > 400 << 20


DAEMON = (
    "import os, sys, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
    "time.sleep(3600)\n"
)


OWN = "env={'PATH': '/bin'}"
"""An environment without the worker's mark. Its limits still have it."""
UNMARKED = f"{OWN}, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_RTTIME, (-1, -1))"
ADOPTS = "import resource; from rnnbench.worker.process_family import adopt_orphans; adopt_orphans()\n"


@pytest.mark.parametrize(
    ("begin", "how", "end"),
    [
        ("", "", "time.sleep(3600)"),
        ("", "", "os.kill(os.getpid(), signal.SIGSEGV)"),
        ("", OWN, "os.kill(os.getpid(), signal.SIGSEGV)"),
        (ADOPTS, UNMARKED, "time.sleep(3600)"),
    ],
    ids=["killed", "dies", "dies, with another environment", "killed, adopted without a mark"],
)
def test_what_left_its_group_and_its_parent_ends_with_it(start, tmp_path, begin, how, end):
    """A daemon: in a session of its own, and a child of nobody's. It has the worker's mark, or the worker adopts it.

    A daemon that has also put back the limit, and whose worker has died, is out of reach.
    """
    number = tmp_path / "daemon.pid"
    script = (
        f"subprocess.run([sys.executable, '-c', {DAEMON!r}, {str(number)!r}], {how})\n"
        f"while not os.path.exists({str(number)!r}) or not open({str(number)!r}).read(): time.sleep(0.01)\n"
    )
    failure(start(begin + script + ANSWER_ONCE + end), 1)
    daemon = int(number.read_text())
    wait_until(lambda: has_ended(daemon), "the daemon outlived it")


def test_a_failure_that_a_kill_for_memory_led_to_is_for_want_of_memory(start, monkeypatch, tmp_path):
    """A compiler's own process was killed, and the compiler says no more than that it failed."""
    events = tmp_path / "memory.events"
    monkeypatch.setattr(process_family, "_memory_events", lambda: iter([events]))
    failed = {"number": 1, "failed": {"outcome": "build-failed", "reason": "cc: Killed"}}
    refuses = f"line.sendall({json.dumps(failed).encode() + LINE_END!r}); time.sleep(900)"
    counts = f"open({str(events)!r}, 'w').write('oom_kill 4'); "
    killed = f"cc: Killed; meanwhile the kernel's out-of-memory killer ended a process, {memory_limit()}"
    for does, outcome, words in (
        (refuses, "build-failed", "cc: Killed"),
        (counts + refuses, "out-of-memory", killed),
    ):
        events.write_text("oom_kill 3")
        worker = start(ANSWER_ONCE + does)
        worker.ready()
        with pytest.raises(WorkerError) as raised:
            worker.ask(EndFork(), 60)
        assert (raised.value.outcome, raised.value.reason, raised.value.alive) == (outcome, words, True)


COMPILERS = {
    "in its session": "subprocess.Popen(['sleep', '3600'])",
    "in another session": "subprocess.Popen(['sleep', '3600'], start_new_session=True)",
    "with another environment": "subprocess.Popen(['sleep', '3600'], start_new_session=True, env={})",
}
SUITE = """
import os, signal, sys
from pathlib import Path
from rnnbench.worker import Host, WorkerProcess
from rnnbench.worker.commands import EndFork
worker = WorkerProcess("odd_worker", EndFork(), Host(Path("log"), {{"PYTHONPATH": os.pathsep.join(["."] + sys.path)}}))
worker.ready()
{paused}
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.first(1)
@pytest.mark.parametrize("paused", ["", "worker.pause()"], ids=["running", "paused"])
def test_what_compilers_started_ends_with_a_suite_that_is_killed(tmp_path, paused):
    """The kernel ends no grandchild with the suite, and a worker that is stopped can do nothing about it."""
    script = f"compilers = [{', '.join(COMPILERS.values())}]\n"
    script += "open('pids', 'w').write(' '.join(str(one.pid) for one in compilers) + f' {os.getpid()}')\n"
    (tmp_path / "odd_worker.py").write_text(BEGIN + script + "line.sendall(REPLY); time.sleep(3600)")
    command = [sys.executable, "-c", SUITE.format(paused=paused)]
    done = subprocess.run(command, cwd=tmp_path, check=False, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL
    pids = map(int, (tmp_path / "pids").read_text().split())
    for what, pid in zip([*COMPILERS, "the worker"], pids, strict=True):
        wait_until(lambda pid=pid: has_ended(pid), f"outlived the suite: {what}")


LEAVES_A_FILE = "import tempfile; open(tempfile.mkdtemp() + '/left', 'w').write('left behind')\n"


@pytest.mark.parametrize("ends", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "time.sleep(3600)"])
def test_temporary_files_go_with_a_worker_that_removes_none(start, ends):
    worker = start(LEAVES_A_FILE + "line.sendall(REPLY); line.recv(65536)\n" + ends)
    worker.ready()
    folder = worker._temporary.path
    assert [path.name for path in folder.glob("*/*")] == ["left"]
    with pytest.raises(WorkerError):
        worker.ask(EndFork(), 1)
    assert not folder.exists()


def test_temporary_files_go_with_a_suite_that_is_killed(tmp_path):
    (tmp_path / "odd_worker.py").write_text(BEGIN + LEAVES_A_FILE + "line.sendall(REPLY); time.sleep(3600)")
    users = tmp_path / "users"
    users.mkdir()
    command = [sys.executable, "-c", SUITE.format(paused="assert os.listdir('users')")]
    variables = {**os.environ, "TMPDIR": str(users), "RNNBENCH_USERS_TMPDIR": ""}
    done = subprocess.run(command, cwd=tmp_path, env=variables, check=False, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL
    wait_until(lambda: not os.listdir(users), "temporary files outlived the suite")


SUITE_WITH_AN_ADAPTER = """
import os, signal
from rnnbench.worker.adapter_process import AdapterProcess
adapter = AdapterProcess("numpy")
adapter.load()
assert len(os.listdir("users")) == 1
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folder_of_an_adapter_goes_with_a_suite_that_is_killed(tmp_path):
    """The supervisor removes it, though it leaves the guard alone."""
    (tmp_path / "users").mkdir()
    variables = {**os.environ, "TMPDIR": str(tmp_path / "users"), "RNNBENCH_USERS_TMPDIR": ""}
    command = [sys.executable, "-c", SUITE_WITH_AN_ADAPTER]
    done = subprocess.run(command, cwd=tmp_path, env=variables, check=False, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL
    wait_until(lambda: not os.listdir(tmp_path / "users"), "temporary files outlived the suite")


def test_another_supervisor_takes_the_place_of_one_that_was_killed():
    supervisor.supervise()
    first = supervisor._supervisor
    supervisor.supervise()
    assert supervisor._supervisor is first
    folder = first.temporary
    for process in psutil.process_iter(["cmdline"]):
        if supervisor.SUITE in (process.info["cmdline"] or ()):
            process.kill()
    wait_until(lambda: not first.is_alive, "it was killed")
    supervisor.supervise()
    assert supervisor._supervisor is not first
    assert supervisor._supervisor.temporary is folder, "what is in it goes with the suite all the same"
    assert supervisor._supervisor.is_alive


def test_a_log_is_read_at_its_end_only(start):
    worker = start(
        ANSWER_ONCE + "os.truncate(2, 3 << 30); os.lseek(2, 0, 2); os.write(2, b'\\x1b[31mred\\0'); os._exit(3)"
    )
    assert failure(worker).reason.endswith("red\N{REPLACEMENT CHARACTER}")


@pytest.mark.first(1)
@pytest.mark.parametrize("module", ["rnnbench.worker", "rnnbench.sampling.roof_worker"])
def test_a_worker_whose_suite_has_gone_while_it_imports_ends_too(tmp_path, module):
    """The suite is killed as soon as the worker is started, long before the worker can tell the kernel of it.

    Nothing else ends the worker: this suite has no supervisor. Its temporary files stay, in this test's folder.
    """
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from rnnbench.temporary import TemporaryFolder\n"
        "from rnnbench.worker import Host, WorkerProcess, launcher\n"
        "from rnnbench.worker.commands import EndFork\n"
        "launcher.supervise = TemporaryFolder\n"
        f"worker = WorkerProcess({module!r}, EndFork(), Host(Path(sys.argv[1]), dict()))\n"
        "print(worker.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    variables = {**os.environ, "TMPDIR": str(tmp_path), "RNNBENCH_USERS_TMPDIR": ""}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    wait_until(lambda: has_ended(pid), "the worker outlived the suite")
    assert "Traceback" not in (tmp_path / "log").read_text(), "it ended before it read its first command"

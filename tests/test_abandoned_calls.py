"""A call that may never return has a thread of its own, and a command ends while it goes on."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from waiting import PATIENCE_S, wait_until

from rnnbench.abandoned_calls import any_left, in_a_thread

COMMAND = """
import atexit, sys, threading
from rnnbench.abandoned_calls import in_a_thread
from rnnbench.cli.ending import end_well

never = threading.Event()
atexit.register(never.wait)  # As Ray does without its head.

def command(ending):
    in_a_thread(never.wait)
    print("said")
    {end}

end_well(command)
"""


def test_a_call_gives_its_value_or_its_error():
    assert in_a_thread(lambda: 3).result(PATIENCE_S) == 3
    with pytest.raises(KeyboardInterrupt, match="of the call"):
        in_a_thread(lambda: (_ for _ in ()).throw(KeyboardInterrupt("of the call"))).result(PATIENCE_S)


def test_a_call_is_left_until_it_returns():
    go_on = threading.Event()
    call = in_a_thread(go_on.wait)
    assert any_left()
    go_on.set()
    assert call.result(PATIENCE_S)
    wait_until(lambda: not any_left(), "the thread ends with its call")


@pytest.mark.parametrize(
    ("end", "status", "told"),
    [
        ("return 3", 3, ""),
        ("raise KeyboardInterrupt", 130, "Interrupted.\n"),
        ("raise OSError(28, 'full', 'a')", 2, "rnnbench: cannot write a: full; free space on its disk, or choose"),
    ],
    ids=["status", "interrupt", "mistake"],
)
def test_a_command_ends_with_its_status_where_a_library_does_not_return(end, status, told):
    command = [sys.executable, "-c", COMMAND.format(end=end)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (status, "said\n"), done.stderr
    assert done.stderr.startswith(told)

"""Where the address space is limited, NumPy's library and DuckDB are loaded with room for buffers, or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

IMPORTS = """
import re, resource, sys
from rnnbench.address_space import load_products_within_limit
resource.setrlimit(resource.RLIMIT_AS, (64 << 30, resource.RLIM_INFINITY))
load_products_within_limit()
used = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (used + (int(sys.argv[1]) << 20), resource.RLIM_INFINITY))
try:
    import numpy
except MemoryError as error:
    print(error)
else:
    print((numpy.ones((300, 300)) @ numpy.ones((300, 300)))[0, 0])
"""


@pytest.mark.parametrize("mebibytes", [20, 60, 90, 100, 110, 120, 127])
def test_without_room_the_import_raises_and_neither_spins_nor_ends_the_process(mebibytes):
    assert imported(mebibytes) == "the limit of the address space leaves no 128 MiB for NumPy"


def test_with_a_little_more_room_it_is_loaded_and_computes():
    assert imported(130) == "300.0"


@pytest.mark.parametrize("mebibytes", [700, 1000])
def test_without_room_for_it_a_database_is_not_loaded(mebibytes):
    """With 150 to 800 MiB it died of SIGSEGV now and then."""
    script = IMPORTS.replace("import numpy", "import duckdb")
    command = [sys.executable, "-c", script, str(mebibytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "the limit of the address space leaves no 1024 MiB for DuckDB"


def imported(mebibytes: int) -> str:
    command = [sys.executable, "-c", IMPORTS, str(mebibytes)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout.strip()


def test_a_command_within_such_a_limit_ends():
    """With so much it loaded everything before NumPy, and then spun."""
    run = str(Path(__file__).parents[1] / "results/gru_streaming")
    limited = ["sh", "-c", 'ulimit -v 250000; exec "$@"', "sh"]
    command = [*limited, sys.executable, "-m", "rnnbench", "compare", run, run]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr

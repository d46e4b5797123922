"""iree-compile in a process of its own, the facts of what it made, and the cache of both.

So a crash of the compiler does not end Python, and a compiler whose caller dies is killed.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import signal
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

from rnnbench.backends.base import BuildError, OperationStage, Request
from rnnbench.backends.iree.hal_devices import HOST, flags_of_device
from rnnbench.backends.iree.lowered import lowered
from rnnbench.backends.program_identity import processor
from rnnbench.disk import read_cached
from rnnbench.rnn import CompoundNetwork

DIRECT = "linalg-direct"
"""The route of the same modules as `linalg`, without reused command buffers, which are wrong on Vulkan
(docs/upstream/iree-vulkan-replay.md)."""
STRIPPED = "--iree-vm-bytecode-module-strip-source-map"
"""For every device. Source positions would make the bytes of equal programs differ."""
NOT_REUSED = "--iree-hal-indirect-command-buffers=false"
"""For the route `linalg-direct`, and for the loop of a compound network, whose reused command buffers the runtime of
IREE 3.13 refuses (OUT_OF_RANGE): command buffers are recorded in each call, with the buffers of that call."""
SUMS = "--iree-dispatch-creation-split-matmul-reduction=4"
"""For the importers' products of one row, on the processor: four sums, as `iree:linalg` writes them."""
SPLIT_ROUTES = ("onnx", "torch")
"""Those of the others are no products to the pass: the flag gains nothing."""
SPLIT_WEIGHTS = 1 << 17
"""Weights from which it was seen to gain always (docs/backends/iree.md)."""
FLOAT64 = "--iree-input-demote-f64-to-f32=false"
"""For files with arrays of float64, which IREE computes in float32 without it."""

OBSERVE = (
    "--dump-compilation-phases-to=phases",
    "--mlir-print-debuginfo",
    "--mlir-elide-elementsattrs-if-larger=16",
    "--mlir-elide-resource-strings-if-larger=64",
    "--iree-scheduling-dump-statistics-format=json",
    "--iree-scheduling-dump-statistics-file=statistics.json",
)
"""The flags that show the program as it is compiled. They take about 4 % of the time and change no byte of it."""

STREAM = "phases/rnn.7.stream.mlir"
"""The first phase that has the final dispatches and loops, and still says which source operation each came from."""


@dataclass(frozen=True)
class Compiled:
    path: Path
    """The .vmfb."""
    cached: bool
    operations: dict[OperationStage, dict[str, int]]
    lowered: str


def flags_of(request: Request) -> tuple[str, ...]:
    """The flags that decide a request's program."""
    direct = request.route == DIRECT or isinstance(request.model, CompoundNetwork)
    wide = request.file is not None and "float64" in request.file.types
    chosen = {NOT_REUSED: direct, FLOAT64: wide, SUMS: _gains_by_sums(request)}
    return (*flags_of_device(request), STRIPPED, *(flag for flag, is_set in chosen.items() if is_set))


def _gains_by_sums(request: Request) -> bool:
    one_row = request.device == "cpu" and request.batch == 1
    return one_row and request.route in SPLIT_ROUTES and request.model.weight_count >= SPLIT_WEIGHTS


def compile_module(text: str, flags: tuple[str, ...], cache: Path, time: str = "") -> Compiled:
    """The module `text`, compiled with `flags` for this machine or loaded from `cache`. Raises BuildError.

    `time` is that of the strategy, in whose words the form of the program is said.
    """
    host = processor() if HOST in flags else ""
    key = hashlib.sha256("\n".join([version("iree-base-compiler"), host, *flags, text]).encode()).hexdigest()
    path, facts = cache / f"iree-{key[:32]}.vmfb", cache / f"iree-{key[:32]}.json"
    cached = path.exists() and read_cached(facts, _read_facts) is not None
    if not cached:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="iree-") as name:
            folder = Path(name)
            (folder / "rnn.mlir").write_text(text, encoding="utf-8")
            run_compiler(folder, flags)
            (folder / "facts.json").write_text(json.dumps(_facts(text, folder, time)))
            (folder / "facts.json").replace(facts)
            (folder / "rnn.vmfb").replace(path)
    return Compiled(path, cached, **_read_facts(facts))


def _read_facts(file: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(file.read_text())
    return facts


def compiler() -> Path:
    """The binary in the wheel. The `iree-compile` on the path is a Python script that starts it."""
    return Path(str(distribution("iree-base-compiler").locate_file("iree/compiler/_mlir_libs/iree-compile")))


def operations(text: str) -> dict[str, int]:
    """How often each operation stands in MLIR text, `linalg.matmul` and the like."""
    body = text.partition("\n{-#")[0]
    names = re.findall(r"^\s*(?:%[\w:]+ = )?([a-z_]+\.[a-z_.]+)|^\s*(module|return)\b", body, re.MULTILINE)
    return dict(Counter(name or {"module": "builtin.module", "return": "func.return"}[bare] for name, bare in names))


def run_compiler(folder: Path, flags: tuple[str, ...], observe: tuple[str, ...] = OBSERVE) -> str:
    """Compile `rnn.mlir` in a folder to `rnn.vmfb`. Returns what the compiler said. Raises BuildError."""
    command = [str(compiler()), "rnn.mlir", "-o", "rnn.vmfb", *flags, *observe]
    process = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", check=False, preexec_fn=die_with_caller
    )
    if process.returncode:
        code = process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"failed with exit status {code}"
        output = [line[:400] for line in process.stderr.splitlines() if line.strip()]
        errors = [line for line in output[:-4] if "error:" in line]
        raise BuildError("\n".join([f"iree-compile {how}", *errors[:2], *output[-4:]]))
    return process.stderr


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def die_with_caller() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _facts(text: str, folder: Path, time: str) -> dict[str, object]:
    statistics = json.loads((folder / "statistics.json").read_text())["stream-aggregate"]
    counts = statistics["execution"] | statistics["executable"] | statistics["synchronization"]
    compiled = {name.removesuffix("-count"): n for name, n in counts.items() if name.endswith("-count")}
    return {
        "operations": {OperationStage.INPUT: operations(text), OperationStage.COMPILED: compiled},
        "lowered": lowered((folder / STREAM).read_text(), time=time),
    }

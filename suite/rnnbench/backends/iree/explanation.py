"""iree-compile's own phases, and its kernels before and after they become LLVM IR: the module is compiled once more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from rnnbench.backends.base import Program, Request
from rnnbench.backends.explanation import Explanation, IrStage, Unreadable, counted, loops_in, shortened
from rnnbench.backends.iree import program as authored
from rnnbench.backends.iree.compile import operations, run_compiler
from rnnbench.backends.iree.imported import encloses
from rnnbench.backends.iree.imported_program import ImportedProgram
from rnnbench.backends.tensorflow.ml_program import lowering, source_of

PHASES = {
    "input": "After the input conversions: one dialect for tensors (linalg), whatever came in.",
    "global-optimization": "After whole-program rewrites: constants folded, transposes moved, weights packed.",
    "dispatch-creation": "Operations are fused and grouped: each group will be one kernel (a dispatch).",
    "flow": "Each group is a kernel of its own; what is left calls them with tensors.",
    "stream": "Calls of kernels are scheduled: buffers, their lifetimes, and what may run at once.",
}
"""The phases that are shown before the kernels, by the names that iree-compile gives them."""
LAST_PHASES = {
    "hal": "The host's side: command buffers that are recorded, and kernels that are loaded.",
    "vm": "The host's side as the bytecode that IREE's virtual machine runs.",
}
DUMPS = (
    "--dump-compilation-phases-to=phases",
    "--iree-hal-dump-executable-intermediates-to=kernels",
    "--mlir-print-ir-before=iree-convert-to-llvm",
    "--mlir-disable-threading",
    "--mlir-elide-elementsattrs-if-larger=16",
    "--mlir-elide-resource-strings-if-larger=64",
)
STARTS = (
    "func private @_step(",
    "func public @step$async(",
    "func private @step$async(",
    "func public @step(",
    "@step(",
)
"""Where to begin to read a phase. The public function may be a wrapper around the one that computes."""
KERNELS = ("@_step_dispatch", "@step_dispatch", "@step$async_dispatch", "step$async_dispatch")
"""Where to begin to read kernels: others pack weights."""
_KERNEL = re.compile(r"^// -----// IR Dump Before ConvertToLLVMPass.*$", re.MULTILINE)
_LLVM = re.compile(r"^  (?:%[\w.]+ = )?(?:tail |musttail )?([a-z]+)\b", re.MULTILINE)
_RESULTS = re.compile(
    r'^( *)(?:%[^=\n]+ = )?(?:tf_executor\.island wraps )?"?((?:tf|stablehlo|ml_program|arith|func)\.\w+)"?',
    re.MULTILINE,
)
"""What stands around the name of an operation of TensorFlow's texts: results, an island of one operation, quotes."""
_MLIR_FUNCTION = re.compile(r"^  func\.func @([^(]+)\(.*?^  \}$", re.MULTILINE | re.DOTALL)
_FUNCTION = re.compile(r'^define [^\n]*?@"?(.*?)"?\(.*?^\}\n', re.MULTILINE | re.DOTALL)


def explain(program: Program, request: Request, folder: Path) -> Explanation:
    before = _of_tensorflow(request) if request.route == "tensorflow" else ()
    module = program.imported.text if isinstance(program, ImportedProgram) else authored.module(request)
    return Explanation(_functions(module), _state(request), chain(before, _stages(program, module, folder)))


def _functions(text: str) -> tuple[str, ...]:
    """The signatures of the module's functions."""
    signatures = re.findall(
        r"func\.func (?:public )?@(\w+)(\(.*?\))( -> .*?)?(?: attributes .*)?(?: loc\(.*\))? \{", text
    )
    return tuple(re.sub(r" loc\([^)]*\)", "", f"{name}{inputs}{outputs}") for name, inputs, outputs in signatures)


def _state(request: Request) -> str:
    if request.strategy.state == "none":
        return ""
    if request.strategy.state == "stateful" and request.route.startswith("linalg"):
        return (
            "A mutable global of the module, one flat tensor; a reset calls the function `reset`, which stores zeros."
        )
    if encloses(request):
        return "Mutable globals of the module, one for each array of the state; `reset` stores zeros in them."
    return "In the buffers that the last call returned; a reset puts zeros into new ones."


def _of_tensorflow(request: Request) -> Iterator[IrStage]:
    """What TensorFlow's own passes make of the SavedModel, before IREE has it."""
    meanings = {
        "tf-executor": "The graph of the SavedModel as MLIR: a node is an operation of the dialect tf.",
        "tf": "As functions of operations, with shapes, and with tensors for the lists of a loop.",
        "stablehlo": "As StableHLO. Variables are globals of ml_program.",
    }
    for name, text in lowering(request).items():
        shown = shortened(text)
        bare = _RESULTS.sub(r"\1\2", shown)
        names = counted(re.findall(r"^ *([a-z_]+\.\w+)", bare, re.MULTILINE))
        yield IrStage(f"tensorflow-{name}", meanings[name], shown, names, "mlir", "@step", _sources(bare))


def _sources(text: str) -> dict[str, int]:
    """Where operations came from, by the names of TensorFlow's nodes in their locations."""
    aliases = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.MULTILINE))
    located = re.findall(r"^ *[a-z_]+\.(\w+)\b.* loc\((.*)\)$", text, re.MULTILINE)
    return counted(source_of(_resolved(location, aliases), operation) for operation, location in located)


def _resolved(location: str, aliases: dict[str, str], depth: int = 8) -> str:
    """A location without its aliases."""
    if not depth or "#loc" not in location:
        return location
    return _resolved(re.sub(r"#loc\d*", lambda alias: aliases.get(alias[0], ""), location), aliases, depth - 1)


def _stages(program: Program, given: str, folder: Path) -> Iterator[IrStage | Unreadable]:
    yield _mlir("given", "The module that iree-compile is given.", shortened(given), "func.func")
    (folder / "rnn.mlir").write_text(given, encoding="utf-8")
    log = run_compiler(folder, program.artifact.flags, DUMPS)
    yield from _phases(folder, PHASES, program.artifact.lowered)
    yield _kernels(log)
    yield _llvm("".join(path.read_text(errors="replace") for path in (folder / "kernels").glob("*.optimized.ll")), log)
    yield from _phases(folder, LAST_PHASES, program.artifact.lowered)


def _phases(folder: Path, phases: dict[str, str], lowered: str) -> Iterator[IrStage]:
    for name, meaning in phases.items():
        (path,) = (folder / "phases").glob(f"*.*.{name}.mlir")
        text = shortened(path.read_text(errors="replace"))
        # From the stream phase on, a loop of the host is a branch to an earlier block.
        branches = 0 if "scf.for" in text or "cf.cond_br" not in text else loops_in(lowered)
        yield _mlir(name, meaning, text, _first_of(text, STARTS), branches)


def _first_of(text: str, starts: tuple[str, ...]) -> str:
    """The first of these that is in the text."""
    return next((start for start in starts if start in text), "")


def _kernels(said: str) -> IrStage | Unreadable:
    """The kernels before they become LLVM IR, which the compiler prints one after the other."""
    _, *kernels = _KERNEL.split(said)
    if not kernels:
        return Unreadable("kernels", "Kernels are lowered to LLVM IR, where this is printed, for the processor only.")
    text = "\n".join(shortened(kernel).strip() for kernel in kernels) + "\n"
    sources = {kernel.group(1): sum(operations(kernel.group(0)).values()) for kernel in _MLIR_FUNCTION.finditer(text)}
    meaning = "Each kernel in loops over memory, just before it becomes LLVM IR."
    return IrStage("kernels", meaning, text, operations(text), "mlir", _first_of(text, KERNELS), sources)


def _mlir(name: str, meaning: str, text: str, begins_at: str, branches: int = 0) -> IrStage:
    return IrStage(name, meaning, text, operations(text), "mlir", begins_at, other_loops=branches)


def _llvm(text: str, said: str) -> IrStage | Unreadable:
    """The kernels' own functions. What IREE links to each, such as its own math functions, is left out."""
    kernels = {match.group(1): match.group(0) for match in _FUNCTION.finditer(text) if f"@{match.group(1)}(" in said}
    if not kernels:
        return Unreadable("llvm", "iree-compile writes LLVM IR for the processor only.")
    operations_by_kernel = {name: _LLVM.findall(kernel) for name, kernel in kernels.items()}
    names = counted(f"llvm.{operation}" for operations in operations_by_kernel.values() for operation in operations)
    sources = {name: len(operations) for name, operations in operations_by_kernel.items()}
    meaning = "The same kernels as LLVM IR, optimised for this processor, without the library that is linked to them."
    shown = "\n".join(kernels.values())
    return IrStage("llvm", meaning, shown, names, "ll", _first_of(shown, KERNELS), sources)

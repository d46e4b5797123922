"""What XLA made of a program, read off its optimised HLO: loops, and the copies of layers inside and outside of them.

HLO text is a list of computations, each a list of instructions that may call others. A loop is a `while`; an
instruction that came from a copy of a layer has the copy's name in its `op_name`, and fusion keeps that.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from rnnbench.backends.shared import describe_lowered

TAG = "cell"
CUDNN = "cudnn_rnn_ffi"
"""The custom call of `jax.experimental.rnn`, which is cuDNN's operator."""
_HEADER = re.compile(r"^(ENTRY )?%([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%[\w.\-]+ = (?:\(.*?\)|\S+) ([a-z][\w\-]*)\(")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition)=%([\w.\-]+)")
_BODY = re.compile(r"body=%([\w.\-]+)")
_SCOPE = re.compile(rf'op_name="[^"]*\b{TAG}(\d+)\b')


@dataclass
class Computation:
    opcodes: Counter[str] = field(default_factory=Counter)
    called: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    """The bodies of its loops."""
    copies: set[str] = field(default_factory=set)
    """Numbers of the copies of layers that its instructions came from."""


def computations(hlo: str) -> tuple[str, dict[str, Computation]]:
    """The name of the entry computation, and every computation by name."""
    entry, by_name, current = "", dict[str, Computation](), Computation()
    for line in hlo.splitlines():
        if header := _HEADER.match(line):
            current = by_name[header[2]] = Computation()
            entry = header[2] if header[1] else entry
        elif instruction := _INSTRUCTION.match(line):
            current.opcodes[instruction[1]] += 1
            current.called += _CALLED.findall(line)
            current.copies.update(_SCOPE.findall(line))
            if instruction[1] == "while":
                current.loops += _BODY.findall(line)
    return entry, by_name


def operations(hlo: str) -> dict[str, int]:
    """Instructions of all computations by opcode, without parameters, constants and tuples, which do nothing."""
    total: Counter[str] = Counter()
    for computation in computations(hlo)[1].values():
        total += computation.opcodes
    no_work = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}
    return {name: count for name, count in sorted(total.items()) if name not in no_work}


def lowered(hlo: str, time: str = "") -> str:
    """What optimised HLO says of a program with this time, as `Artifact.lowered` has it."""
    entry, by_name = computations(hlo)
    bodies = [body for computation in by_name.values() for body in computation.loops]
    inside = [copies for body in bodies if (copies := _copies(by_name, body))]
    straight = _copies(by_name, entry) - set().union(*inside)
    fused = f'custom_call_target="{CUDNN}"' in hlo
    return describe_lowered([len(copies) for copies in inside], len(straight), fused=fused, time=time)


def _copies(by_name: dict[str, Computation], start: str) -> set[str]:
    """Numbers of the copies in a computation and in all that it calls."""
    seen, waiting, copies = set[str](), [start], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            copies |= by_name[name].copies
            waiting += by_name[name].called
    return copies

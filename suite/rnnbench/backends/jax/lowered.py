"""What XLA made of a program, read off its optimised HLO: loops, and the copies of the cell in and outside of them.

HLO text is a list of computations, each a list of instructions that may call others. A loop is a `while`; an
instruction that came from a copy of the cell has the copy's name in its `op_name`, and fusion keeps that.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from rnnbench.backends.shared import describe_lowered

TAG = "cell"
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
    """Copies of the cell that it has instructions of."""


def computations(hlo: str) -> tuple[str, dict[str, Computation]]:
    """The name of the entry, and every computation by name."""
    entry, found, current = "", dict[str, Computation](), Computation()
    for line in hlo.splitlines():
        if header := _HEADER.match(line):
            current = found[header[2]] = Computation()
            entry = header[2] if header[1] else entry
        elif instruction := _INSTRUCTION.match(line):
            current.opcodes[instruction[1]] += 1
            current.called += _CALLED.findall(line)
            current.copies.update(_SCOPE.findall(line))
            if instruction[1] == "while":
                current.loops += _BODY.findall(line)
    return entry, found


def operations(hlo: str) -> dict[str, int]:
    """Instructions by opcode in all computations; parameters, constants and tuples do nothing and are left out."""
    total: Counter[str] = Counter()
    for computation in computations(hlo)[1].values():
        total += computation.opcodes
    nothing = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}
    return {name: count for name, count in sorted(total.items()) if name not in nothing}


def lowered(hlo: str) -> str:
    """What optimised HLO says of a program, as `Artifact.lowered` has it."""
    entry, found = computations(hlo)
    bodies = [body for computation in found.values() for body in computation.loops]
    inside = [copies for body in bodies if (copies := _copies(found, body))]
    straight = _copies(found, entry) - set().union(*inside)
    return describe_lowered([len(copies) for copies in inside], len(straight))


def _copies(found: dict[str, Computation], start: str) -> set[str]:
    """Copies in a computation and in all that it calls."""
    seen, waiting, copies = set[str](), [start], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            copies |= found[name].copies
            waiting += found[name].called
    return copies

"""What became of a kernel, read off the LLVM IR that its machine code is made from, after LLVM's optimiser.

Every copy of the cell's step calls an intrinsic (`MARK`) that does nothing and becomes no instruction, but that a
compiler may neither drop nor merge. The copy is where this call is in the control flow.
"""

from __future__ import annotations

import re
from collections import Counter

from rnnbench.backends.shared import describe_lowered

MARK = "llvm.sideeffect"

_OPERATION = re.compile(r"^  (?:%\S+ = )?(?:tail |musttail |notail )?([a-z]+)\b")
_CALLED = re.compile(r"@(llvm\.(?:x86\.[a-z0-9.]+?|[a-z.]+?))(?:\.v\d+\w*|\.[fip]\d*|\.x86\S*)*\(")


def operations(ir: str) -> dict[str, int]:
    """How many instructions of each kind a module has, calls of intrinsics by name."""
    counts: Counter[str] = Counter()
    for body in _functions(ir):
        for line in body:
            if (found := _OPERATION.match(line)) and MARK not in line:
                called = _CALLED.search(line) if found[1] == "call" else None
                if called is None or not called[1].startswith("llvm.dbg"):
                    counts[called[1] if called else found[1]] += 1
    return dict(sorted(counts.items()))


def lowered(ir: str) -> str:
    """Which copies of the step are in a loop and which are not, as `Artifact.lowered` has it."""
    loops: list[int] = []
    straight = 0
    for body in _functions(ir):
        marks, follows = _flow(body)
        for component in _components(follows):
            copies = sum(marks[block] for block in component)
            cyclic = len(component) > 1 or any(block in follows[block] for block in component)
            if copies and cyclic:
                loops.append(copies)
            elif copies:
                straight += copies
    return describe_lowered(loops, straight)


def _functions(ir: str) -> list[list[str]]:
    bodies: list[list[str]] = []
    inside = False
    for line in ir.splitlines():
        if line.startswith("define "):
            bodies.append([])
        inside = (inside or line.startswith("define ")) and line != "}"
        if inside:
            bodies[-1].append(line)
    return bodies


def _flow(body: list[str]) -> tuple[Counter[str], dict[str, set[str]]]:
    """Marks of each block of a function, and the blocks that follow each."""
    marks: Counter[str] = Counter()
    follows: dict[str, set[str]] = {"entry": set()}
    block = "entry"
    for line in body:
        if label := re.match(r'^("[^"]*"|[\w.$-]+):', line):
            block = label[1]
            follows.setdefault(block, set())
        elif MARK in line:
            marks[block] += 1
        follows[block].update(re.findall(r'label %("[^"]*"|[\w.$-]+)', line))
    return marks, follows


def _components(follows: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components: Tarjan's algorithm, without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []
    for root in follows:
        work = [] if root in index else [(root, iter(sorted(follows[root])))]
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            for after in rest:
                if after not in index:
                    work.append((after, iter(sorted(follows.get(after, ())))))
                    break
                if after in stack:
                    low[node] = min(low[node], index[after])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    start = stack.index(node)
                    components.append(stack[start:])
                    del stack[start:]
    return components

"""What became of the time steps, read off the compiler's IR by the locations that the emitter gave each copy.

In the `stream` phase a function is blocks of `stream.cmd.dispatch`, one for each kernel launch, and a loop is a branch
back to an earlier block. Every operation of a copy of the cell has the location `copy <number>`. Fusion joins locations
and keeps them, so a copy is where its location is.
"""

from __future__ import annotations

import re

from rnnbench.backends.shared import describe_lowered

TAG = "copy "
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_REFERENCE = re.compile(r"#loc\d*\b")


def lowered(stream: str, function: str = "step", time: str = "") -> str:
    """What the `stream` phase of a module says of one of its functions, as `Artifact.lowered` has it.

    `time` is that of the strategy.
    """
    copies = _copies_by_block(stream, function)
    loops = _loops(stream, function)
    inside = [set().union(*(copies.get(b, set()) for b in range(first, last + 1))) for first, last in loops]
    straight = set().union(*copies.values()) - set().union(*inside)
    return describe_lowered([len(numbers) for numbers in inside if numbers], len(straight), time=time)


def _body(stream: str, function: str) -> list[str]:
    lines = stream.splitlines()
    # A program from torch's dialect is in an asynchronous function, and the other function waits for it.
    starts = [f"  util.func public @{name}(" for name in (f"{function}$async", function)]
    start = next(i for s in starts for i, line in enumerate(lines) if line.startswith(s))
    end = next(i for i in range(start, len(lines)) if lines[i].startswith("  }"))
    return lines[start:end]


def _copies_by_block(stream: str, function: str) -> dict[int, set[str]]:
    aliases = dict(_ALIAS.findall(stream))
    block, inside, copies = 0, False, dict[int, set[str]]()
    for line in _body(stream, function):
        if label := re.match(r"  \^bb(\d+)", line):
            block = int(label[1])
        if "stream.cmd.dispatch" in line:
            inside = True
        elif inside and (location := re.match(r"\s*\} loc\((.*)\)$", line)):
            copies.setdefault(block, set()).update(_tags(location[1], aliases))
            inside = False
    return copies


def _tags(location: str, aliases: dict[str, str]) -> set[str]:
    """The copies that a location names, through all the aliases in it."""
    seen, waiting, tags = set[str](), [location], set[str]()
    while waiting:
        text = waiting.pop()
        tags.update(re.findall(rf'"({TAG}[^"]*)"', text))
        new = set(_REFERENCE.findall(text)) - seen
        seen |= new
        waiting.extend(aliases[name] for name in new)
    return tags


def _loops(stream: str, function: str) -> list[tuple[int, int]]:
    """First and last block of each loop."""
    block, loops = 0, []
    for line in _body(stream, function):
        if label := re.match(r"  \^bb(\d+)", line):
            block = int(label[1])
        elif re.match(r"\s*cf\.(cond_)?br ", line):
            loops += [(int(to), block) for to in re.findall(r"\^bb(\d+)", line) if int(to) <= block]
    return loops

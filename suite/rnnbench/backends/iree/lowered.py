"""What became of the time steps: read off the compiler's own IR, by the locations that the emitter put on each copy.

In the `stream` phase a function is blocks of `stream.cmd.dispatch`, one for each kernel launch, and a loop is a branch
back to an earlier block. Every operation of a copy of the cell carries the location `copy <number>`; fusion
joins locations and keeps them, so a copy is where its location is.
"""

from __future__ import annotations

import re

TAG = "copy "
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_REFERENCE = re.compile(r"#loc\d*\b")


def lowered(stream: str, function: str = "step") -> str:
    """`looped n`, `looped n of k` (k copies of the cell in each pass), `unrolled n`, or a mixture joined by ` + `."""
    copies = _copies_by_block(stream, function)
    loops = _loops(stream, function)
    inside = [set().union(*(copies.get(b, set()) for b in range(first, last + 1))) for first, last in loops]
    inside = [found for found in inside if found]
    straight = set().union(*copies.values()) - set().union(*inside)
    parts = []
    for size in sorted({len(found) for found in inside}):
        number = sum(len(found) == size for found in inside)
        parts.append(f"looped {number}" if size == 1 else f"looped {number} of {size}")
    if straight:
        parts.append(f"unrolled {len(straight)}")
    return " + ".join(parts)


def _body(stream: str, function: str) -> list[str]:
    lines = stream.splitlines()
    # What was imported from torch's dialect is in an asynchronous function, and the other waits for it.
    starts = [f"  util.func public @{name}(" for name in (f"{function}$async", function)]
    start = next(i for s in starts for i, line in enumerate(lines) if line.startswith(s))
    end = next(i for i in range(start, len(lines)) if lines[i].startswith("  }"))
    return lines[start:end]


def _copies_by_block(stream: str, function: str) -> dict[int, set[str]]:
    aliases = dict(_ALIAS.findall(stream))
    block, inside, found = 0, False, dict[int, set[str]]()
    for line in _body(stream, function):
        if label := re.match(r"  \^bb(\d+)", line):
            block = int(label[1])
        if "stream.cmd.dispatch" in line:
            inside = True
        elif inside and (location := re.match(r"\s*\} loc\((.*)\)$", line)):
            found.setdefault(block, set()).update(_tags(location[1], aliases))
            inside = False
    return found


def _tags(location: str, aliases: dict[str, str]) -> set[str]:
    """The copies a location names, through every alias it is made of."""
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

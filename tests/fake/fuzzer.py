"""A seeded fuzzer: inputs mutated from what the suite ships, in their bytes, their tokens and their values.

An input is read as the suite reads it. Either it is good, or the suite refuses it with one of its own errors. Any other
exception is a fault, and so is more than SLOWEST_S of the processor's time.
"""

from __future__ import annotations

import copy
import json
import random
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

SLOWEST_S = 1.0
"""The processor's seconds that one input may take."""
MOST_FAULTS = 10
"""Different faults after which a series ends."""
LONGEST = 20_000
"""Bytes of an input, so that many of them are read in a second. Long ones have tests of their own."""
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 255, 10**6, 2**31, 2**53 + 1, 2**63, 10**40, -(10**400)),
    *(0.5, -0.0, 1e-320, 1e308, float("inf"), float("-inf"), float("nan")),
    *("", " ", "all", "none", "null", "1e999", "0x10", "-", ".", "..", "/", "a/b", "ok", "bound", "10s", "1GiB", "∞"),
    *("\0", "\n", "\x1b[2J", "\u202e", "\ud800", "\udcff", "é" * 300, "x" * 5_000, "|[](<&`$", "{}", "[]", "%s"),
    *([], {}, [[]], [None], [{}], {"": None}, {"a": {"b": {"c": []}}}, [1, "a", None, 2.5], list(range(50))),
)
TOKENS = tuple(
    part.encode()
    for part in (
        *("{", "}", "[", "]", ":", ": ", ",", "- ", "\n", "\n  ", "#", "'", '"', "|", ">", "&a ", "*a", "!!int ", "? "),
        *(
            "---\n",
            "...\n",
            "%YAML 1.2\n",
            "~",
            "null",
            "true",
            "no",
            "1e5",
            "-1",
            "0",
            "9" * 50,
            ".nan",
            "-.inf",
            "0o7",
        ),
        *(
            "all",
            "schema: 2",
            "\t",
            "\r",
            "\\u0000",
            "\\ud800",
            "NaN",
            "Infinity",
            "-",
            "=",
            ".",
            "..",
            "\u2028",
            "\ufeff",
        ),
    )
)
ODD_BYTES = (b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x1b", b"\x85", b"\xef\xbb\xbf", b"\xe2\x80\xa8")


@dataclass(frozen=True)
class Subject:
    """Something that reads inputs."""

    name: str
    seeds: Sequence[bytes]
    read: Callable[[bytes], object]
    refuses: tuple[type[BaseException], ...]
    """The errors by which it says that an input is wrong."""
    values: Sequence[Any] = ()
    """The seeds as plain data. What is mutated in them is written as JSON, which YAML can read too."""


@dataclass
class Fuzzed:
    """What a series of inputs led to."""

    inputs: int = 0
    accepted: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    faults: dict[str, str] = field(default_factory=dict)
    """By the place of the exception: what was raised, and the input."""

    @property
    def rate(self) -> float:
        return self.inputs / self.seconds


def fuzz(subject: Subject, inputs: int, seed: int, slowest_s: float = SLOWEST_S) -> Fuzzed:
    """Read so many inputs, the same ones for the same seed. More CPU time than `slowest_s` is a fault."""
    draw, done = random.Random(f"{subject.name}/{seed}"), Fuzzed()
    began = time.perf_counter()
    while done.inputs < inputs and len(done.faults) < MOST_FAULTS:
        data = mutated(subject, draw)
        done.inputs += 1
        before = time.process_time()
        try:
            subject.read(data)
            done.accepted += 1
        except subject.refuses:
            pass
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            done.faults.setdefault(_place(error), f"{error!r:.300}: {data[:600]!r}")
        took = time.process_time() - before
        if took > slowest_s:
            done.faults.setdefault("slow", f"{took:.2f} s: {data[:600]!r}")
        done.slowest_s = max(done.slowest_s, took)
    done.seconds = time.perf_counter() - began
    return done


def mutated(subject: Subject, draw: random.Random) -> bytes:
    """An input: a seed whose values or whose bytes were changed, or both."""
    if subject.values and draw.random() < 0.6:
        value = _with_odd_values(draw.choice(subject.values), draw)
        data = json.dumps(value, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")
        if draw.random() < 0.8:
            return data[:LONGEST]
    else:
        data = draw.choice(subject.seeds)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        data = draw.choice(BYTE_CHANGES)(data, draw, subject)
    return data[:LONGEST]


def _flip(data: bytes, draw: random.Random, subject: Subject) -> bytes:
    if not data:
        return data
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]


def _insert(data: bytes, draw: random.Random, subject: Subject) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(draw.choice((TOKENS, ODD_BYTES))) + data[at:]


def _replace(data: bytes, draw: random.Random, subject: Subject) -> bytes:
    begin, end = _span(data, draw, 12)
    return data[:begin] + draw.choice(TOKENS) + data[end:]


def _delete(data: bytes, draw: random.Random, subject: Subject) -> bytes:
    begin, end = _span(data, draw, 200)
    return data[:begin] + data[end:]


def _repeat(data: bytes, draw: random.Random, subject: Subject) -> bytes:
    begin, end = _span(data, draw, 60)
    return data[:end] + data[begin:end] * draw.choice((1, 1, 2, 30)) + data[end:]


def _splice(data: bytes, draw: random.Random, subject: Subject) -> bytes:
    other = draw.choice(subject.seeds)
    return data[: draw.randrange(len(data) + 1)] + other[draw.randrange(len(other) + 1) :]


def _cut(data: bytes, draw: random.Random, subject: Subject) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


BYTE_CHANGES = (_flip, _insert, _insert, _replace, _replace, _delete, _repeat, _splice, _cut)


def _span(data: bytes, draw: random.Random, longest: int) -> tuple[int, int]:
    begin = draw.randrange(len(data) + 1)
    return begin, min(len(data), begin + draw.randrange(longest))


def _with_odd_values(value: Any, draw: random.Random) -> Any:
    """A copy in which a few values or keys, wherever they are, are others."""
    value = copy.deepcopy(value)
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        _change(value, draw)
    return value


def _change(value: Any, draw: random.Random) -> None:
    node = value
    while isinstance(node, dict | list) and node:
        key = draw.choice(list(node)) if isinstance(node, dict) else draw.randrange(len(node))
        inner = node[key]
        if isinstance(inner, dict | list) and inner and draw.random() < 0.8:
            node = inner
            continue
        _change_at(node, key, draw)
        return


def _change_at(node: Any, key: Any, draw: random.Random) -> None:
    kind = draw.randrange(6)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node[draw.choice(("", "x", str(key) + "s", "\ud800", "schema", str(key).upper()))] = copy.deepcopy(node[key])
    elif kind == 2 and isinstance(node[key], int | float) and abs(node[key]) < 1e15:
        node[key] = node[key] * draw.choice((-1, 0, 2, 10, 1e3, 1e30, 0.5))
    elif kind == 3:
        node[key] = [node[key], copy.deepcopy(draw.choice(ODD_VALUES))]
    else:
        node[key] = copy.deepcopy(draw.choice(ODD_VALUES))


def _place(error: BaseException) -> str:
    """The type, and the last line of the suite that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/rnnbench/" in frame.filename] or frames
    return f"{type(error).__name__} at {own[-1].filename.rpartition('/rnnbench/')[2]}:{own[-1].lineno}"

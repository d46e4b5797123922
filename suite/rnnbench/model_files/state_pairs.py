"""Which output of one call is the input of the next: traced through the graph, else by shape, by name, or asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rnnbench.model_files.description import ArrayDescription, Found, Question, StatePair
from rnnbench.model_files.flow import RECURRENT, Carried, Flow

_BEFORE = re.compile(r"^(?:in|prev|previous|past|init|initial|old|input)_|_?(?:in|prev|init|initial|input|0|t0|i)$")
_AFTER = re.compile(r"^(?:out|next|new|present|final|last|output)_|_?(?:out|next|new|final|output|n|tn|t1|1|o)$")
"""What is left away of the names of a state's input and output. The rest of both is then the same."""


@dataclass(frozen=True)
class Pairing:
    """What is known of the states of a file."""

    pairs: tuple[StatePair, ...]
    questions: tuple[Question, ...]


def pair_states(flow: Flow, inputs: Sequence[ArrayDescription], outputs: Sequence[ArrayDescription]) -> Pairing:
    """Pair inputs with outputs. What fits several ways is asked, and not decided."""
    search = _Search({a.name: a for a in inputs}, {a.name: a for a in outputs})
    for carried in flow.carried:
        search.trace(flow, carried)
    search.settle_traced()
    search.by_shape()
    search.by_name()
    return Pairing(tuple(search.pairs.values()), tuple(search.questions()))


class _Search:
    def __init__(self, inputs: Mapping[str, ArrayDescription], outputs: Mapping[str, ArrayDescription]) -> None:
        self._inputs, self._outputs = inputs, outputs
        self.pairs: dict[str, StatePair] = {}
        self._groups: list[tuple[set[str], set[str]]] = []
        self._unclear: dict[str, list[str]] = {}

    def trace(self, flow: Flow, carried: Carried) -> None:
        """Note which inputs reach the initial state, and which outputs the final one."""
        if carried.before is None or carried.after is None:
            return
        before = set(flow.sources(carried.before)) & self._inputs.keys()
        after = set(flow.targets(carried.after)) & self._outputs.keys()
        if before and after and (before, after) not in self._groups:
            self._groups.append((before, after))

    def settle_traced(self) -> None:
        """A pair is traced where an input fits one output only, and that output no other input, of those traced."""
        fits: dict[str, set[str]] = {}
        for before, after in self._groups:
            for name in before:
                there = {other for other in after if _compatible(self._inputs[name], self._outputs[other])}
                fits[name] = fits[name] & there if name in fits else there
        for name, others in fits.items():
            rivals = {rival for rival, theirs in fits.items() if rival != name and theirs & others}
            if len(others) == 1 and not rivals:
                self._pair(name, next(iter(others)), "traced")
        for name, others in fits.items():
            if name not in self.pairs and others:
                named = [other for other in sorted(others & self._free_outputs()) if _same_stem(name, other)]
                if len(named) == 1:
                    self._pair(name, named[0], "traced")
                else:
                    self._unclear[name] = sorted(others)

    def by_shape(self) -> None:
        """Pairs of an input and an output whose shape and type nothing else has.

        Only beside an input and an output that are certainly no state: they have a shape of their own.
        """
        free_in, free_out = self._free_inputs(), self._free_outputs()
        alike = {name: [o for o in free_out if _identical(self._inputs[name], self._outputs[o])] for name in free_in}
        taken = [other for others in alike.values() for other in others]
        if all(alike.values()) or not free_out - set(taken):
            return
        for name, others in alike.items():
            if len(others) == 1 and taken.count(others[0]) == 1:
                self._pair(name, others[0], "shape")

    def by_name(self) -> None:
        """Pairs whose names differ in a beginning or an end that says before or after."""
        for name in self._free_inputs():
            named = [
                other
                for other in self._free_outputs()
                if _same_stem(name, other) and _compatible(self._inputs[name], self._outputs[other])
            ]
            if len(named) == 1:
                self._pair(name, named[0], "name")

    def questions(self) -> Iterable[Question]:
        """For inputs that may be a state, where it is not certain of which output."""
        free_in, free_out = self._free_inputs(), self._free_outputs()
        for name in free_in:
            traced = [other for other in self._unclear.get(name, ()) if other in free_out]
            alike = [o for o in free_out if _identical(self._inputs[name], self._outputs[o])]
            choices = " or ".join(sorted(traced or alike))
            if traced:
                yield Question(name, "state", f"is {choices} its next value? It reaches a recurrent operator's state.")
            elif choices and len(free_in) > 1 and len(free_out) > 1:
                yield Question(name, "state", f"is it a state, and {choices} its next value? They have the same shape.")

    def _pair(self, before: str, after: str, found: Found) -> None:
        self.pairs[before] = StatePair(before, after, found)
        self._unclear.pop(before, None)

    def _free_inputs(self) -> list[str]:
        return [name for name, array in self._inputs.items() if name not in self.pairs and array.shape != ()]

    def _free_outputs(self) -> set[str]:
        return self._outputs.keys() - {pair.after for pair in self.pairs.values()}


def state_notes(flow: Flow, inputs: Iterable[str], outputs: Iterable[str]) -> list[str]:
    """Recurrent operators whose state no call gets, or none gives back."""
    names_in, names_out = set(inputs), set(outputs)
    lost = []
    for carried in flow.carried:
        if carried.operator not in RECURRENT:
            continue
        given = carried.before is not None and names_in & set(flow.sources(carried.before))
        kept = carried.after is not None and names_out & set(flow.targets(carried.after))
        if not (given and kept):
            lost.append((carried.operator, bool(given), bool(kept)))
    return [
        f"{count} of its {operator} states {_lost_how(given, kept)}. If the network kept a state when it was exported, "
        "the export has lost it"
        for (operator, given, kept), count in {one: lost.count(one) for one in lost}.items()
    ]


def _lost_how(given: bool, kept: bool) -> str:
    if not given and not kept:
        return "start from the same value in every call, and their final values reach no output"
    return "reach no output" if given else "start from the same value in every call"


def _identical(one: ArrayDescription, other: ArrayDescription) -> bool:
    return one.shape is not None and one.shape == other.shape and one.dtype == other.dtype


def _compatible(one: ArrayDescription, other: ArrayDescription) -> bool:
    """Whether nothing that is known of the two differs: sizes that have names may be any."""
    if one.dtype != other.dtype:
        return False
    if one.shape is None or other.shape is None:
        return True
    return len(one.shape) == len(other.shape) and all(
        a == b or not (isinstance(a, int) and isinstance(b, int)) for a, b in zip(one.shape, other.shape, strict=True)
    )


def _same_stem(before: str, after: str) -> bool:
    first, second = _BEFORE.sub("", before.lower()), _AFTER.sub("", after.lower())
    return bool(first) and first == second

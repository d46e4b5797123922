"""Which output of one call is the input of the next: traced through the graph, else by shape, by name, or asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rnnbench.model_files.description import ArrayDescription, FoundBy, Question, StatePair, same_elements
from rnnbench.model_files.flow import OUTERMOST, RECURRENT, Flow, OperatorState, Value


def _ways(beginning: str, end: str) -> tuple[re.Pattern[str], ...]:
    """Three ways to read a name: an `n` at its end is a mark in `hn`, and none in `hidden`."""
    return tuple(map(re.compile, (f"^{beginning}_|[_.]?{end}$", f"^{beginning}_", f"[_.]{end}$")))


_BEFORE = _ways("(?:in|prev|previous|past|init|initial|old|input)", "(?:in|prev|init|initial|input|i)")
_AFTER = _ways("(?:out|next|new|present|final|last|output|updated|r)", "(?:out|next|new|final|output|n|tn|o)")
_AFTER_INSIDE = (re.compile(r"_(?:next|new)(?=_)"),)
"""What is left away of the names of a state's input and output. The rest of both is then the same."""
_NUMBER = re.compile(r"(.*?)[_.]?(\d*|t[01])", re.DOTALL)
"""A name and the number at its end. It is the number of a layer, or says before and after: h0 and h1."""
_FIRST, _SECOND = ("", "0", "t0"), ("", "1", "t1")
_GIVEN_ANEW, _RESULT = re.compile(r"x|in|inputs?"), re.compile(r"y|out|outputs?")
"""Names that speak against a state, with any number at their end."""
_SIGNAL = re.compile(
    "audio|sound|wav|wave|waveform|pcm|mic|microphone|left|right|mix|speech|voice|noisy|signal|samples|feats?|features?|"
    "mel|mfcc|spec|spectrum|spectrogram|frames?|images?|video|tokens?|enhanced|denoised|clean|logits|probs|"
    "encoder|decoder|model"
)
"""What a network is given and gives, and what does it. A name of such words alone speaks against a state, as audio_in
and decoder_input, not mel_buffer."""
_CONDITION = re.compile(
    "speaker|spk|embedding|emb|style|cond|condition|conditioning|reference|ref|far|end|farend|prompt"
)
"""What a network is given beside its signal. An input of such words alone, as speaker_embedding, is no state because
its shape fits."""
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True)
class Pairing:
    """What is known of the states of a file."""

    pairs: tuple[StatePair, ...]
    questions: tuple[Question, ...]
    notes: tuple[str, ...] = ()


def pair_states(
    flow: Flow,
    inputs: Sequence[ArrayDescription],
    outputs: Sequence[ArrayDescription],
    depends: Mapping[str, Collection[str]],
) -> Pairing:
    """Pair inputs with outputs. What fits several ways is asked, and not decided.

    `depends` has the inputs that each output is computed from, where the format tells them.
    """
    search = _Search(flow, {a.name: a for a in inputs}, {a.name: a for a in outputs}, depends)
    for state in flow.states:
        search.trace(state)
    search.settle_traced()
    search.by_shape()
    search.by_name()
    return Pairing(tuple(search.pairs.values()), tuple(search.questions()), tuple(search.misfits()))


def certain_pairs(
    flow: Flow, inputs: Sequence[ArrayDescription], outputs: Sequence[ArrayDescription]
) -> Iterable[StatePair]:
    """The pairs that operators or names tell, and no shape alone."""
    search = _Search(flow, {a.name: a for a in inputs}, {a.name: a for a in outputs}, {})
    for state in flow.states:
        search.trace(state)
    search.settle_traced()
    search.by_name()
    return search.pairs.values()


class _Search:
    def __init__(
        self,
        flow: Flow,
        inputs: Mapping[str, ArrayDescription],
        outputs: Mapping[str, ArrayDescription],
        depends: Mapping[str, Collection[str]],
    ) -> None:
        self._flow, self._inputs, self._outputs, self._depends = flow, inputs, outputs, depends
        self.pairs: dict[str, StatePair] = {}
        self._groups: list[tuple[set[str], set[str]]] = []
        self._unclear: dict[str, list[str]] = {}
        self._doubted: dict[str, Question] = {}
        """What is asked of an input whose name or shape is not believed, by its name."""

    def trace(self, state: OperatorState) -> None:
        """Note which inputs reach the initial state, and which outputs the final one."""
        if state.before is None or state.after is None:
            return
        before = set(self._flow.sources(state.before)) & self._inputs.keys()
        after = set(self._flow.targets(state.after)) & self._outputs.keys()
        if before and after and (before, after) not in self._groups:
            self._groups.append((before, after))

    def settle_traced(self) -> None:
        """A pair is traced where an input fits one output only, and that output no other input, of those traced."""
        fits: dict[str, set[str]] = {}
        for before, after in self._groups:
            for name in before:
                there = {other for other in after if self._fits(name, other)}
                fits[name] = fits[name] & there if name in fits else there
        for name, others in fits.items():
            rivals = {rival for rival, theirs in fits.items() if rival != name and theirs & others}
            if len(others) == 1 and not rivals:
                self._pair(name, next(iter(others)), "traced")
        open_ones = {name: others for name, others in fits.items() if name not in self.pairs and others}
        for name, other in self._alike(open_ones).items():
            self._pair(name, other, "traced")
        self._unclear = {name: sorted(others) for name, others in open_ones.items() if name not in self.pairs}

    def by_shape(self) -> None:
        """Pairs of an input and an output whose shape and type nothing else has.

        Only beside an input and an output that are certainly no state: they have a shape of their own.
        """
        free_in, free_out = self._free_inputs(), self._free_outputs()
        alike = {
            # An output that is the input itself is no state.
            name: [o for o in free_out if o != name and _identical(self._inputs[name], self._outputs[o])]
            for name in free_in
        }
        taken = [other for others in alike.values() for other in others]
        if all(alike.values()) or not free_out - set(taken):
            return
        found = {
            name: o[0]
            for name, o in alike.items()
            if len(o) == 1 and taken.count(o[0]) == 1 and not _are_given_and_made(name, o[0])
        }
        left_in, left_out = [name for name in free_in if name not in found], free_out - {*found.values()}
        if self._alike(dict.fromkeys(left_in, left_out)) or any(
            i != o and self._fits(i, o) for i in left_in for o in left_out
        ):
            return  # What is left may be states, and these what is given and made anew in each call.
        self._pair_or_ask(found, "shape")

    def by_name(self) -> None:
        """Pairs whose names differ in a beginning or an end that says before or after, where some input is left."""
        free = [name for name in self._inputs if name not in self.pairs]
        fits = {name: {other for other in self._outputs if self._fits(name, other)} for name in free}
        alike = self._alike({name: others for name, others in fits.items() if not _is_signal(name)})
        if len(alike) == len(free):
            return  # such as audio and audio_out: some input is new in each call
        self._ask_crossed(alike)
        self._pair_or_ask({name: other for name, other in alike.items() if name not in self._doubted}, "name")

    def _pair_or_ask(self, pairs: Mapping[str, str], found: FoundBy) -> None:
        """Pair them, but for floats of which the output is computed from the input alone, as an embedding is, or fits
        by its shape and is not computed from the input at all.

        An output that is the input itself, moved, is a state that an export has lost.
        """
        for name, other in pairs.items():
            sources = {*self._depends.get(other, ())} if "float" in self._inputs[name].dtype else set[str]()
            is_moved = name in self._flow.sources(Value(OUTERMOST, other))
            if sources == {name} and self._flow.knows_moves and not is_moved:
                alone = f"It is computed from {name} alone, and from no input of the call."
                self._doubt(name, f"is {other} its next value? {alone}")
            elif found == "shape" and sources and name not in sources and not _are_named_alike(name, other):
                self._doubt(name, f"is {other} its next value? It has the same shape, but is not computed from {name}.")
            else:
                self._pair(name, other, found)

    def _doubt(self, name: str, text: str) -> None:
        self._doubted[name] = Question(name, "state", text, is_guess=True)

    def _ask_crossed(self, named: Mapping[str, str]) -> None:
        """Ask for states of one kind whose next values may have each other's names.

        By their names a next value is not computed from its own state; in another order each of them is.
        """
        compared = set[str]()
        for before, after in named.items():
            if before in compared or before in self._depends.get(after, (before,)):
                continue
            alike = {b: a for b, a in named.items() if _identical(self._inputs[b], self._inputs[before])}
            compared |= alike.keys()
            for name, other in _by_dependence(alike, self._depends).items():
                if other != named[name]:
                    text = (
                        f"is its next value {named[name]}, as the names say, or {other}? By the names, {after} is the "
                        f"next value of {before}, but it is not computed from it."
                    )
                    self._doubted[name] = Question(name, "state", text)

    def questions(self) -> Iterable[Question]:
        """For inputs that may be a state, where it is not certain of which output."""
        free_in, free_out = self._free_inputs(), self._free_outputs()
        others = [name for name in self._inputs if name not in self.pairs]
        for name in free_in:
            if self._inputs[name].dtype == "string":
                continue
            if name in self._doubted:
                yield self._doubted[name]
                continue
            traced = [other for other in self._unclear.get(name, ()) if other in free_out]
            alike = [o for o in free_out if o != name and _alike_shapes(self._inputs[name], self._outputs[o])]
            choices = " or ".join(sorted(traced or alike))
            if traced:
                yield Question(name, "state", f"is {choices} its next value? It reaches a recurrent operator's state.")
            elif choices and len(free_out) > 1 and (len(free_in) > 1 or (len(others) > 1 and not _is_new(name))):
                same = all(_identical(self._inputs[name], self._outputs[o]) for o in alike)
                shapes = "They have the same shape." if same else "Their shapes fit."
                text = f"is it a state, and {choices} its next value? {shapes}"
                yield Question(name, "state", text, is_guess=True)

    def _alike(self, fits: Mapping[str, set[str]]) -> dict[str, str]:
        """For inputs, the one free output of those it fits whose name says that it comes after."""
        free = self._free_outputs()
        stems = Counter(stem for name in self._free_inputs() for stem in {stem for stem, _ in _before(name)})
        found: dict[str, str] = {}
        for is_alike in (_same_number, _next_number):
            for name, others in fits.items():
                if name in found or (is_alike is _next_number and any(stems[stem] > 1 for stem, _ in _before(name))):
                    continue
                named = [other for other in others & (free - set(found.values())) if is_alike(name, other)]
                if len(named) == 1:
                    found[name] = named[0]
        return found

    def _fits(self, before: str, after: str) -> bool:
        one, other = self._inputs[before], self._outputs[after]
        return one.dtype == other.dtype and same_elements(one, other)

    def misfits(self) -> Iterable[str]:
        """Inputs and outputs that are a state by their names, and not by what they hold."""
        free = [name for name in self._inputs if name not in self.pairs]
        alike = self._alike({name: {o for o in self._outputs if not self._fits(name, o)} for name in free})
        if len(alike) == len(free):
            return  # such as lstm_input and lstm, as Keras calls them: some input is new in each call
        for before, after in alike.items():
            yield (
                f"{after} has a name as if it were the next value of {before}, and another type or shape: so they are "
                "no state"
            )

    def _pair(self, before: str, after: str, found: FoundBy) -> None:
        self.pairs[before] = StatePair(before, after, found)
        self._unclear.pop(before, None)

    def _free_inputs(self) -> list[str]:
        return [name for name, array in self._inputs.items() if name not in self.pairs and array.shape != ()]

    def _free_outputs(self) -> set[str]:
        return self._outputs.keys() - {pair.after for pair in self.pairs.values()}


def state_notes(flow: Flow, inputs: Iterable[str], outputs: Iterable[str]) -> list[str]:
    """Recurrent operators whose state no call gets, or none gives back."""
    names_in, names_out = set(inputs), set(outputs)
    lost: Counter[tuple[str, bool, bool]] = Counter()
    for state in flow.states:
        if state.operator not in RECURRENT:
            continue
        given = state.before is not None and not names_in.isdisjoint(flow.computed_from(state.before))
        kept = state.after is not None and not names_out.isdisjoint(flow.targets(state.after))
        if not (given and kept):
            lost[state.operator, given, kept] += 1
    return [
        f"{count} of its {operator} states {_lost_how(given=given, kept=kept)}. If the network kept a state when it "
        "was exported, the export has lost it"
        for (operator, given, kept), count in lost.items()
    ]


def _lost_how(*, given: bool, kept: bool) -> str:
    if not given and not kept:
        return "start from the same value in every call, and their final values reach no output"
    return "reach no output" if given else "start from the same value in every call"


def _by_dependence(named: Mapping[str, str], depends: Mapping[str, Collection[str]]) -> dict[str, str]:
    """The pairs in which each next value is computed from its own state, those of `named` first; none if that fails."""
    befores: dict[str, str] = {}

    def place(before: str, tried: set[str]) -> bool:
        for after in sorted(named.values(), key=lambda other: other != named[before]):
            if after not in tried and before in depends.get(after, ()):
                tried.add(after)
                if after not in befores or place(befores[after], tried):
                    befores[after] = before
                    return True
        return False

    placed = all(place(before, set()) for before in named)
    return {before: after for after, before in befores.items()} if placed else {}


def _identical(one: ArrayDescription, other: ArrayDescription) -> bool:
    return one.shape is not None and one.shape == other.shape and one.dtype == other.dtype


def _alike_shapes(one: ArrayDescription, other: ArrayDescription) -> bool:
    """Whether they have as many axes, all of which may be equal, and one of several elements certainly is."""
    if one.shape is None or other.shape is None or one.dtype != other.dtype or len(one.shape) != len(other.shape):
        return False
    if one.shape == other.shape:
        return True
    pairs = list(zip(one.shape, other.shape, strict=True))
    sizes = [a for a, b in pairs if isinstance(a, int) and a == b]
    return any(size > 1 for size in sizes) and not any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs
    )


def _are_given_and_made(before: str, after: str) -> bool:
    """Whether a name says that an array is given anew in each call, or is its result: x and y."""
    return _is_new(before) or _is_signal(after) or bool(_RESULT.fullmatch(_numbered(after.lower())[0]))


def _is_new(name: str) -> bool:
    """Whether the name of an input says that it is given anew in each call."""
    return _has_words_of(name, _SIGNAL, _CONDITION) or bool(_GIVEN_ANEW.fullmatch(_numbered(name.lower())[0]))


def _is_signal(name: str) -> bool:
    """Whether each word of a name, but for `in` and `out`, is one of a signal: audio_in, noisy_speech."""
    return _has_words_of(name, _SIGNAL)


def _has_words_of(name: str, *kinds: re.Pattern[str]) -> bool:
    words = {*_WORD.findall(name.lower())} - {"in", "out", "input", "output"}
    return bool(words) and all(any(kind.fullmatch(word) for kind in kinds) for word in words)


def _are_named_alike(before: str, after: str) -> bool:
    """Whether the names say that the second is the next value of the first."""
    return _same_number(before, after) or _next_number(before, after)


def _same_number(before: str, after: str) -> bool:
    """Whether both names have the same stem and number, such as state_1 and new_state_1."""
    return before != after and any(stem for stem, _ in _before(before) & _after(after))


def _next_number(before: str, after: str) -> bool:
    """Whether the second name has the next number or an n, such as h0 and h1, or h0 and hn."""
    first = {stem for stem, number in _before(before) if stem and number in _FIRST}
    return before != after and not first.isdisjoint(stem for stem, number in _after(after) if number in _SECOND)


def _before(name: str) -> set[tuple[str, str]]:
    return {_stem(name, marks) for marks in _BEFORE}


def _after(name: str) -> set[tuple[str, str]]:
    return {_stem(name, marks) for marks in (_AFTER_INSIDE if _AFTER_INSIDE[0].search(name.lower()) else _AFTER)}


def _stem(name: str, marks: re.Pattern[str]) -> tuple[str, str]:
    """What a name says beside before or after, and its number: ("state", "1") of next_state_1 and of state_1_out."""
    stem, number = _numbered(marks.sub("", name.lower()))
    return (marks.sub("", stem), number) if number else (stem, number)


def _numbered(name: str) -> tuple[str, str]:
    found = _NUMBER.fullmatch(name)
    assert found is not None
    return found[1], found[2]

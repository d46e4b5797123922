"""A case file to begin with: commented, ready to run, for a cell, a named network or a model file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap

from pydantic import ValidationError

from rnnbench.model_files import CALLS_OF, FileNetwork, FileSection, ModelFileError, section_yaml
from rnnbench.rnn import GATES, Model, Network, families
from rnnbench.spelling import count

STEPS = 64
_WIDTH = 116
"""Characters of a line of comment."""
CELLS = tuple(cell for cell in GATES if cell != "counter")
_TIMES = {
    "given": "the file's own program",
    "fused": "the runtime's operator",
    "looped": "one body in a loop",
    "unrolled": "a copy a step",
    "parallel": "a scan",
}


def names_of_networks() -> list[str]:
    """The names that `rnnbench new` knows: cells, and the networks of all families that a case can name."""
    return [*CELLS, *(name for name, family in families().items() if name != Model.network and family.keys_in_case)]


def case_of_network(what: str, name: str) -> str:
    """The text of a case for a name of `names_of_networks`."""
    if what in CELLS:
        model = [
            _commented(f"  cell: {what}", ", ".join(CELLS)),
            _commented("  input: 64", "size of x at each step"),
            _commented("  hidden: [128]", "a list anywhere is an axis: [128, 512] makes trials of both"),
        ]
        times, chunks = "[fused, looped, unrolled]", "[1, 16]"
    else:
        family = families()[what]
        model = [f"  network: {what}", *_sizes(family)]
        times = "[looped, unrolled, parallel]" if _runs_in_parallel(family) else "[looped, unrolled]"
        chunks = "[1, 8]"
    return _text(name, ["model:", *model], times, "[stitched, stateful]", chunks, 1)


def case_of_file(
    section: FileSection,
    name: str,
    network: FileNetwork,
    notes: Sequence[str] = (),
    answers: Sequence[str] = (),
    failing_steps: Mapping[int, str] | None = None,
) -> str:
    """The text of a case for a model file. `notes` become comments; `answers` are the user's answers.

    `failing_steps` has the numbers of steps with which a call fails, each with the reason. Raises ModelFileError if no
    case can run the file.
    """
    chunk, batch, failing = network.steps, network.rows, failing_steps or {}
    chunks = [steps for steps in CALLS_OF if steps not in failing]
    if chunk is None and not chunks:
        raise ModelFileError(f"calls of {' and of '.join(map(str, CALLS_OF))} steps fail: {failing[CALLS_OF[0]]}")
    notes = [
        *notes,
        *(f"Calls of {count(steps, 'step')} fail, so there are none: {why}" for steps, why in failing.items()),
    ]
    states = ("stitched", "stateful") if section.state else ("none",)
    for state in states:
        if refused := network.refusal(
            time="given", state=state, chunk=chunk or 1, batch=batch or 1, dtype=network.dtype
        ):
            raise ModelFileError(refused[1])
    comments = [f"# {line}" for note in notes for line in wrap(_in_comment(note), _WIDTH)]
    model = [*comments, *section_yaml(section, answers).splitlines()]
    steps = max(STEPS // (chunk or 8), 1) * (chunk or 8)
    return _text(name, model, "given", f"[{', '.join(states)}]", str(chunk or chunks), batch or 1, steps)


def _in_comment(note: str) -> str:
    """A note without characters that end a comment of YAML: a name in it may be of a file that is not trusted."""
    return "".join(character if character.isprintable() else " " for character in note)


def _runs_in_parallel(family: type[Network]) -> bool:
    """Whether its steps can run together, at its own sizes. Of a family that lacks some this is told of the case."""
    try:
        return not family().lacks_time("parallel")
    except ValidationError:
        return False


def _sizes(family: type[Network]) -> Iterable[str]:
    for key, field in family.model_fields.items():
        value, said = ("", "Needed: ") if field.is_required() else (f" {field.default}", "")
        yield _commented(f"  # {key}:{value}", _in_comment(f"{said}{field.description or ''}"))


def _text(name: str, model: Iterable[str], times: str, states: str, chunks: str, batch: int, steps: int = STEPS) -> str:
    meaning = "; ".join(f"{time}: {means}" for time, means in _TIMES.items() if time in times)
    keys = [
        ("workload:", ""),
        (f"  steps: {steps}", "time steps of the whole stream"),
        (f"  chunk: {chunks}", "steps of one call; 1 is sample by sample, all is the whole stream"),
        (f"  batch: {batch}", "streams that advance together"),
        ("strategy:", ""),
        (f"  time: {times}", meaning),
        (f"  state: {states}", "stitched: the caller carries the state; stateful: the program keeps it"),
        ("measure:", ""),
        ("  budget: 1s", "sampling time of one trial"),
        ("  processes: 3", "fresh processes that sample one trial"),
    ]
    commented = [_commented(key, comment) if comment else key for key, comment in keys]
    return "\n".join(["schema: 1", f"name: {name}", *model, *commented]) + "\n"


def _commented(key: str, comment: str) -> str:
    """YAML takes no comment without a space before it."""
    return f"{key:<35} # {comment}"

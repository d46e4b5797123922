"""JSON Lines: one JSON object a row. A value that is not there is null; infinity and NaN are strings."""

from __future__ import annotations

import json
import math
import re
from typing import TextIO

from rnnbench.results.columns import Value
from rnnbench.results.exports.export import Export
from rnnbench.results.run import Run

_UNSEEN = re.compile(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""What JSON may have as it is, and a terminal obeys, or a reader of lines takes for an end."""


def _write(run: Run, stream: TextIO) -> None:
    for row in run.rows():
        written = json.dumps({name: _finite(value) for name, value in row.items()}, ensure_ascii=False)
        stream.write(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", written) + "\n")


def _finite(value: Value) -> Value:
    """JSON has no infinity and no NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


EXPORT = Export("jsonl", ".jsonl", "rows as JSON objects, one a line", _write)

"""An alert: bad news of the history with a state, and the file in which people decide about it.

`found` is the machine's part. Every other key may be written by people, and by the transitions of `alerts`.
"""

from __future__ import annotations

import hashlib
import re
from datetime import date, datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from rnnbench.history.measures import MEASURES
from rnnbench.results import FACTS

SCHEMA = 3
"""A file of schema 1 need not end with YAML's mark of the end. Up to schema 2, no alert has `until`."""
FIRST_WITH_END = 2
MAX_ALERTS = 5_000
MAX_MEMBERS = 10_000
State = Literal["new", "confirmed", "accepted", "reported", "mended", "refuted"]
Evidence = Literal["candidate", "published", "event", "compared", "checked"]
"""`candidate`: only the screen sees it. `published`: sure enough to be told. `event`: a fact, and no statistics.
`compared`: `rnnbench ab` found it on the night of the new versions; a second comparison has to confirm it.
`checked`: the conformance check of a new version found it."""
SILENCE = "silence"
"""The subject of an alert about missing runs."""
CERTAIN_FACTS = ("outcome", "failed_checks", "support", "lowered")
"""Facts of a program. What is not believed, not measured or silent may be the machine's doing."""
ID_DIGITS = 4
SUBJECTS = (*MEASURES, *FACTS, SILENCE)


def _day(text: str) -> str:
    if date.fromisoformat(text).isoformat() != text:
        raise ValueError("not a day")
    return text


def _night(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is not None:
        raise ValueError("not in UTC without a zone")
    return text


def _subject(text: str) -> str:
    if text not in SUBJECTS:
        raise ValueError("unknown")
    return text


Day = Annotated[str, AfterValidator(_day), WithJsonSchema({"type": "string", "title": "a day such as 2026-03-31"})]
Text = Annotated[
    str,
    Field(min_length=1, max_length=2_000),
    WithJsonSchema({"type": "string", "title": "a text of 1 to 2,000 characters"}),
]
Written = Annotated[str, WithJsonSchema({"type": "string", "title": "a text"})]
Night = Annotated[
    str, AfterValidator(_night), WithJsonSchema({"type": "string", "title": "a time such as 2026-03-31T02:00:00"})
]
Subject = Annotated[
    str, AfterValidator(_subject), WithJsonSchema({"title": f"one of {', '.join(SUBJECTS)}", "enum": list(SUBJECTS)})
]
Url = Annotated[
    str,
    Field(pattern=r"^https?://\S+$", max_length=300),
    WithJsonSchema({"type": "string", "title": "an address that begins with https://"}),
]
Ratio = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False),
    WithJsonSchema({"type": "number", "title": "new over old, such as 1.05"}),
]
Bounds = Annotated[
    tuple[Ratio, Ratio],
    WithJsonSchema({"type": "array", "items": {"title": "a ratio"}, "title": "a low and a high ratio"}),
]
Versions = Annotated[
    tuple[Written, Written],
    WithJsonSchema({"type": "array", "items": {"title": "a text"}, "title": "the versions before and after"}),
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Measured(_Part):
    """What `rnnbench ab` measured of both versions."""

    ratio: Ratio
    interval: Bounds
    versions: Versions
    on: Day


class Acceptance(_Part):
    """A person's decision that it stays as it is."""

    why: Text
    by: Text
    until: Day
    """The last day. After it, the alert is new again."""


class UpstreamReport(_Part):
    """The report to the maintainers of the backend."""

    issue: Url
    on: Day


class Detection(_Part):
    """Bad news that rnnbench has detected: a level that rose, an event, or missing runs."""

    machine: Written
    """Fingerprint."""
    backend: Written = ""
    """Empty where runs are missing."""
    what: Subject
    """A measure of `measures`, a fact of `events`, or `silence`."""
    evidence: Evidence
    whole_backend: Annotated[bool, WithJsonSchema({"type": "boolean"})] = False
    night: Night
    """Start of the first run with it, UTC; of the last one with data where something is no longer measured."""
    until: Night | None = None
    """Of a drift: start of the first run with its last level. None where a level changed suddenly."""
    run: Written
    """Name of that run."""
    last_run: Written = ""
    """Name of the last run before."""
    versions: Versions = ("", "")
    ratio: Ratio | None = None
    interval: Bounds | None = None
    before: Written = ""
    after: Written = ""
    """Values of the fact before and after an event; empty for a level."""
    detail: Written = ""
    members: Annotated[
        tuple[Written, ...],
        Field(max_length=MAX_MEMBERS),
        WithJsonSchema({"type": "array", "items": {"type": "string", "title": "a text"}, "title": "a list of texts"}),
    ] = ()
    """Trials; for `silence`, cases."""

    @property
    def is_level(self) -> bool:
        """Whether it is a change of a series of numbers."""
        return self.what in MEASURES


class Alert(_Part):
    """One alert: a backend, a measure or fact, and the night from which on it is there, on one machine."""

    id: Text
    state: Annotated[State, WithJsonSchema({"enum": list(get_args(State))})]
    note: Text | None = None
    ab: Measured | None = None
    accepted: Acceptance | None = None
    reported: UpstreamReport | None = None
    mended: Day | None = None
    """The day on which it was seen that the series had returned."""
    returned: Text | None = None
    """Why it is closed: the comparison of versions that showed that it had returned, or what explains it. None where
    its series has returned."""
    found: Detection

    @property
    def is_finding(self) -> bool:
        """Whether it is a finding: an event, or a change that was published or confirmed, and not refuted."""
        return self.state != "refuted" and (
            self.found.evidence in ("published", "event", "checked") or self.ab is not None
        )

    @property
    def is_certain(self) -> bool:
        """Whether it is open and needs no further measurement: a confirmed change, or a fact about a program."""
        return self.state == "confirmed" or (self.state == "new" and self.found.what in CERTAIN_FACTS)

    @property
    def is_open(self) -> bool:
        """Whether somebody has to decide or to wait."""
        return self.state in ("new", "confirmed", "reported")

    @property
    def has_additions(self) -> bool:
        """Whether a person or a measurement has added something."""
        return any((self.note, self.ab, self.accepted, self.reported))

    def with_(self, **changes: Any) -> Alert:
        return self.model_copy(update=changes)


REQUIRED: dict[State, str] = {
    "confirmed": "ab",
    "refuted": "ab",
    "accepted": "accepted",
    "reported": "reported",
    "mended": "mended",
}
"""The key that a state needs."""


class AlertsContent(_Part):
    """The whole file."""

    schema_: Annotated[
        int, Field(ge=1, le=SCHEMA), WithJsonSchema({"enum": [*range(1, SCHEMA + 1)], "title": f"1 to {SCHEMA}"})
    ] = Field(alias="schema")
    alerts: Annotated[list[Alert], Field(max_length=MAX_ALERTS)]


def new_id(detection: Detection) -> str:
    """`2026-03-04-onnxruntime-bound-3f2a`. It is made once, and stays while the estimate of the night wobbles."""
    content = "\n".join(
        (detection.machine, detection.backend, detection.what, detection.after, detection.run, *detection.members[:1])
    )
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:ID_DIGITS]
    words = (detection.night[:10], detection.backend or "machine", detection.what, digest)
    return "-".join(re.sub(r"[^\w.+-]+", "_", word)[:60] for word in words)

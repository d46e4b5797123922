"""Text from outside the suite is safe to print and to store, and short, and says what was cut."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnbench.outside_text import LOG_TAIL, TEXT_LIMIT, describe_error, one_line, quoted_end, read_tail, safe_text
from rnnbench.results import Artifact, CheckResult
from rnnbench.worker import Failed, WorkerError
from rnnbench.worker.commands import Load
from rnnbench.worker.protocol import decode_reply, encode_reply

ODD = "\ud800\x1b[31mred\x1b[0m\0\u202e\x9b\r"
SAFE = "\N{REPLACEMENT CHARACTER}red" + "\N{REPLACEMENT CHARACTER}" * 4


@given(st.text(st.characters()))
def test_any_text_can_be_printed_and_stored(text):
    safe = safe_text(text)
    safe.encode()
    assert "\x1b" not in safe
    assert safe_text(safe) == safe


def test_what_is_fit_to_print_stays_as_it_is():
    assert safe_text("error:\n\texpected ';' – naïve 🙂") == "error:\n\texpected ';' – naïve 🙂"
    assert safe_text(ODD) == SAFE


@given(st.text(st.characters()))
def test_one_line_is_one(text):
    assert one_line(text).splitlines() in ([one_line(text)], [])
    assert "\t" not in one_line(text)


def test_a_line_of_many_is_one():
    assert one_line("Error:\n    1 is not  2\u2028") == "Error: 1 is not  2 "


def test_a_long_text_keeps_both_ends_and_says_how_much_is_cut():
    safe = safe_text("begin" + "x" * 200_000_000 + "end")
    assert safe.startswith("begin")
    assert safe.endswith("end")
    assert re.search(r"\[1999\d{5} characters cut\]", safe)
    assert len(safe) <= TEXT_LIMIT
    assert safe_text(safe) == safe


@pytest.mark.parametrize("raised", [RuntimeError, SystemExit, KeyboardInterrupt])
def test_an_exception_without_a_message_that_can_be_made_is_told_by_its_type(raised):
    class Odd(Exception):
        def __str__(self):
            raise raised

    assert describe_error(Odd()) == f"Odd: its message cannot be shown: {raised.__name__}"


def test_only_the_end_of_a_log_is_read(tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(3 << 30)
        file.seek(0, 2)
        file.write(b"last")
    assert len(read_tail(log)) == LOG_TAIL
    assert read_tail(log).endswith("last")
    assert read_tail(tmp_path / "none") == ""


def test_the_end_of_a_log_is_quoted(tmp_path):
    log = tmp_path / "log"
    log.write_text("first\nsecond\n\nthird\nlast\n")
    assert quoted_end(log) == "; its log ends: second | third | last"
    assert quoted_end(tmp_path / "none") == ""


def test_wherever_it_enters_it_is_safe():
    artifact = Artifact(
        source_digest=ODD, digest=ODD, nbytes=1, operations={"input": {ODD: 1}}, lowered=ODD, origin="library",
        math="exact", flags=(ODD,), notes=(ODD,),
    )  # fmt: skip
    assert (artifact.lowered, artifact.digest, artifact.flags, artifact.notes) == (SAFE, SAFE, (SAFE,), (SAFE,))
    assert artifact.operations == {"input": {SAFE: 1}}
    assert CheckResult(verdict="fail", detail=ODD).detail == SAFE
    assert Failed("crashed", ODD).reason == WorkerError("crashed", ODD, alive=True).reason == SAFE


def test_what_another_program_wrote_on_the_channel_is_safe_too():
    line = json.dumps({"number": 0, "failed": {"outcome": "crashed", "reason": ODD}}).encode()
    assert decode_reply(line, Load).reply.reason == SAFE
    assert decode_reply(encode_reply(Failed("crashed", ODD)), Load).reply.reason == SAFE


@pytest.mark.parametrize("limit", [2, 40, 60, 66, 67, 80, 200])
def test_a_text_is_never_longer_than_its_limit(limit):
    """Also where the words of the cut need more room than there is."""
    safe = safe_text("x" * 5000, limit)
    assert len(safe) <= limit
    assert "…" in safe


def test_an_error_without_a_message_is_told_by_its_type():
    assert describe_error(KeyboardInterrupt()) == "KeyboardInterrupt"

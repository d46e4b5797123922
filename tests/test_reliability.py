"""The counts on the page about reliability are those of the tables that its tests go through."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from damaged_shards import DAMAGES
from faulty_adapters import FAULTS
from interrupted_commands import BLOWS_EACH, COMMANDS, SHORT, SHORT_BLOWS
from moved_work import HONEST, LIARS
from planted_sets import PLANTED
from ways_of_dying import WAYS, Kind

from rnnbench.conformance import CHECKS
from rnnbench.conformance.tolerance import FACTOR

DOCS = Path(__file__).parents[1] / "docs"
PAGE, CONFORMANCE, TOLERANCE, MEASUREMENT = (
    (DOCS / f"{name}.md").read_text() for name in ("reliability", "conformance", "tolerance", "measurement")
)
FOUND_BY = Counter(fault.found_by for fault in FAULTS)


KINDS = {
    Kind.RAISES: "raises",
    Kind.NO_MEMORY: "needs memory",
    Kind.EXITS: "asks the interpreter to exit",
    Kind.DIES: "the process ends",
    Kind.BREAKS_CHANNEL: "breaks the channel",
    Kind.HANGS: "hangs",
    Kind.SURVIVES: "leaves something behind",
    Kind.HARMS_ITSELF: "breaks its own process",
    Kind.LIES: "lies",
}


def test_the_planted_set_is_as_large_as_the_page_says_and_has_200_or_more():
    total = sum(map(len, PLANTED.values()))
    assert total >= 200
    assert f"{total} planted programs" in PAGE
    for what, names in PLANTED.items():
        assert len(set(names)) == len(names)
        assert f"| {what} | {len(names)} |" in PAGE


def test_the_ways_of_dying_are_as_many_as_the_page_says():
    assert f"| {len(WAYS)} ways |" in PAGE
    counted = Counter(way.kind for way in WAYS.values())
    for kind, name in KINDS.items():
        assert re.search(rf"^\| {name}:.*\| {counted[kind]} \| ", PAGE, re.MULTILINE), name


def test_the_long_commands_and_the_damages_are_as_many_as_the_page_says():
    assert f"| {len(COMMANDS)} commands, {BLOWS_EACH} blows each in `make bench`: " in PAGE
    assert f"| {len(DAMAGES)} damages |" in PAGE
    assert f"`cli/test_interruptions.py`: {len(SHORT)} commands, {SHORT_BLOWS} blows each" in PAGE


def test_every_page_has_the_number_of_planted_faults_and_of_checks():
    assert f"| {len(FAULTS)} planted faults, all found" in PAGE
    assert f"{FOUND_BY['bound']} faults found by `bound` alone" in PAGE
    assert f"| {len(CHECKS)} [checks](#the-checks)" in CONFORMANCE
    assert f"{len(FAULTS)} adapters, each wrong in one way; {len(FAULTS)} found" in CONFORMANCE
    assert f"{FOUND_BY['bound']} of the {len(FAULTS)} faults are found by `bound`" in CONFORMANCE
    assert f"{len(FAULTS)} of {len(FAULTS)} planted faults found" in MEASUREMENT
    assert f"{len(LIARS)} programs that move work" in MEASUREMENT
    assert f"{len(HONEST)} honest look-alikes" in MEASUREMENT
    assert f"by {FACTOR:g} times the **expected rounding**" in TOLERANCE


def test_a_row_that_names_checks_has_the_number_of_their_faults():
    rows = re.findall(r"\| checks (.*?) \| `conformance/test_faults.py` \| (\d+) planted faults \|", PAGE)
    assert len(rows) == 2
    for checks, count in rows:
        assert sum(FOUND_BY[name] for name in re.findall("`(.*?)`", checks)) == int(count)


def test_the_page_of_conformance_has_a_row_for_every_check():
    assert {check.name for check in CHECKS} <= set(re.findall(r"^\| `(\S+?)` \|", CONFORMANCE, re.MULTILINE))

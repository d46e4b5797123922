"""What a night found: a page in Markdown, the same as JSON for programs, and a text for each alert's issue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rnnbench.history import MEASURES, Alert
from rnnbench.reports.commands import Commands
from rnnbench.reports.comparison_page import COMMENT_CHARACTERS
from rnnbench.reports.escape import Markdown, code, paragraph
from rnnbench.reports.triage import alert_line
from rnnbench.results import Record, Verdict
from rnnbench.spelling import count

SHOWN = 50
"""Lines of a list; the rest is counted."""
COMMANDS = 3
"""Alerts whose commands are on the page."""
MEMBERS = 100
"""Trials that an issue names."""
VERDICTS: tuple[Verdict, ...] = ("SLOWER", "FASTER", "SAME", "UNDECIDED")
LEGEND = (
    "*SLOWER* and *FASTER*: the verdict on one latency of one trial, the newest version against the last good one, "
    "sampled in turn. An alert is *confirmed* where a second comparison found it again. *A/A* compares an environment "
    "with itself: each SLOWER or FASTER there is a false alarm of this machine. docs/night.md says more."
)
CUT = "The page is cut here: a comment of GitHub holds 65,536 characters. night.json has all of it."


@dataclass(frozen=True)
class BackendLine:
    """What became of one backend."""

    backend: str
    good: str
    """The last good version before this night; empty where there was none."""
    newest: str
    """Empty where it is not known."""
    verdicts: dict[str, int]
    """How often each verdict was reached; empty where nothing was compared."""
    said: str
    """What follows from it."""
    conformance: str = ""
    """What the check of the newest version found; empty where there was none."""


@dataclass(frozen=True)
class NightSummary:
    """One night, for people and programs."""

    day: str
    machine: str
    runs: tuple[str, ...]
    backends: tuple[BackendLine, ...]
    confirmed: tuple[Alert, ...]
    """Found and confirmed in this night."""
    closed: tuple[Alert, ...]
    """Mended in this night."""
    still_open: tuple[Alert, ...]
    """Certain, and of an earlier night."""
    seen: tuple[Alert, ...]
    """New, and seen in the history alone: a measurement or a person has to decide."""
    not_confirmed: tuple[str, ...]
    """Found SLOWER, and not found again; a sentence each."""
    failed: tuple[Record, ...]
    """Nonconforming, or failed, and not expected to."""
    same: dict[str, int]
    """Verdicts of the A/A comparisons; empty where there was none."""
    problems: tuple[str, ...]
    """Steps that failed, and what could not be installed; a sentence each."""
    slow_calls: tuple[str, ...] = ()
    """Some calls became slow, which no verdict counts; a sentence each."""

    @property
    def undecided(self) -> list[str]:
        """Backends that were compared without a verdict on any latency."""
        return [line.backend for line in self.backends if set(line.verdicts) == {"UNDECIDED"}]

    @property
    def is_wrong(self) -> bool:
        """Whether a trial is nonconforming, or passes against the list of expected failures."""
        return any(record.outcome == "nonconforming" or record.passes_unexpectedly for record in self.failed)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing happened."""
        found = (self.confirmed, self.closed, self.seen, self.not_confirmed, self.failed, self.problems)
        return not any((*found, self.slow_calls))


def night_page(night: NightSummary, commands: Commands) -> str:
    """The page as Markdown. It is no longer than a comment of GitHub may be, and says so where it is cut."""
    page = _page(night, commands)
    if len(page) > COMMENT_CHARACTERS:
        page = _page(night, None)
    if len(page) <= COMMENT_CHARACTERS:
        return page
    end = page.rindex("\n", 0, COMMENT_CHARACTERS - len(CUT) - 3)
    return f"{page[:end]}\n\n{CUT}\n"


def alert_issue(alert: Alert, commands: Commands) -> tuple[str, str]:
    """Title and text of the issue of an alert."""
    detection = alert.found
    fact = "conformance" if detection.evidence == "checked" else detection.what
    what = MEASURES[detection.what].title if detection.is_level else fact
    parts: list[str] = [alert_line(alert)]
    if versions := _versions(alert):
        parts.append(Markdown("Versions: {}.").format(versions))
    parts.append(Markdown("State: {}. Machine: {}.").format(alert.state, code(detection.machine)))
    if alert.mended:
        why = Markdown(": {}").format(alert.returned) if alert.returned else Markdown("")
        parts.append(Markdown("Mended on {}{}.").format(alert.mended, why))
    parts.append(_list(map(code, detection.members), MEMBERS))
    parts += [Markdown("These commands show it again:"), commands.block(detection)]
    return f"{detection.backend}: {what}, since {detection.night[:10]} [{alert.id}]", "\n\n".join(
        map(paragraph, parts)
    ) + "\n"


def night_json(night: NightSummary) -> dict[str, object]:
    """The summary as plain data."""
    return {
        "schema": 1,
        "day": night.day,
        "machine": night.machine,
        "runs": list(night.runs),
        "backends": [vars(line) for line in night.backends],
        "confirmed": [alert.id for alert in night.confirmed],
        "closed": [alert.id for alert in night.closed],
        "still_open": [alert.id for alert in night.still_open],
        "seen": [alert.id for alert in night.seen],
        "not_confirmed": list(night.not_confirmed),
        "failed": [{"trial": r.trial, "outcome": r.outcome, "reason": r.reason} for r in night.failed],
        "same": night.same,
        "problems": list(night.problems),
        "slow_calls": list(night.slow_calls),
    }


def _page(night: NightSummary, commands: Commands | None) -> str:
    return "\n\n".join(map(paragraph, _parts(night, commands))) + "\n"


def _parts(night: NightSummary, commands: Commands | None) -> Iterator[str]:
    yield Markdown("# Night of {}").format(night.day)
    yield _summary(night)
    yield from _section("Confirmed tonight", map(_alert, night.confirmed))
    if commands:
        yield from _what_to_do(night.confirmed, commands)
    yield from _section("Closed tonight", map(_closed, night.closed))
    yield from _section("Nonconforming or failed", map(_failed, night.failed))
    yield from _section("Problems", map(Markdown("- {}.").format, night.problems))
    yield from _section("Backends", map(_backend, night.backends))
    yield from _section("Found slower, and not confirmed", map(Markdown("- {}.").format, night.not_confirmed))
    yield from _section("Slow calls", map(Markdown("- {}.").format, night.slow_calls))
    yield from _section("Seen in the history, and not confirmed", map(_alert, night.seen))
    yield from _section("Still open", map(_alert, night.still_open))
    yield Markdown("## Machine")
    yield Markdown("{}. A/A: {}.").format(code(night.machine), _counts(night.same) or "not measured tonight")
    yield Markdown(LEGEND)


def _summary(night: NightSummary) -> Markdown:
    if night.is_quiet:
        undecided = Markdown(", ").join(map(code, night.undecided))
        noisy = Markdown(" Of {} no latency was decided; --budget gives a trial more time.").format(undecided)
        answer = Markdown("**Nothing to tell**: no alert was confirmed or closed, and every trial did as expected.{}")
        return answer.format(noisy if night.undecided else "")
    text = (
        "**{} confirmed, {} closed**, {} found slower and not confirmed, {} seen in the history and not confirmed, "
        "{} nonconforming or failed, {}{}."
    )
    return Markdown(text).format(
        count(len(night.confirmed), "alert"),
        len(night.closed),
        len(night.not_confirmed),
        len(night.seen),
        count(len(night.failed), "trial"),
        count(len(night.problems), "problem"),
        Markdown(", {} of slow calls").format(count(len(night.slow_calls), "warning")) if night.slow_calls else "",
    )


def _backend(line: BackendLine) -> Markdown:
    moved = line.newest if line.good in ("", line.newest) else f"{line.good} → {line.newest or 'not known'}"
    verdicts = Markdown(": {}").format(_counts(line.verdicts)) if line.verdicts else Markdown("")
    checked = Markdown("; conformance: {}").format(line.conformance) if line.conformance else Markdown("")
    return Markdown("- **{}** {}{}{}; {}.").format(line.backend, moved or "no version", verdicts, checked, line.said)


def _counts(verdicts: dict[str, int]) -> str:
    return ", ".join(f"{verdicts[name]} {name}" for name in VERDICTS if verdicts.get(name))


def _alert(alert: Alert) -> Markdown:
    versions = _versions(alert)
    return Markdown("{}; {}").format(alert_line(alert), versions) if versions else alert_line(alert)


def _versions(alert: Alert) -> Markdown:
    """The versions before and after; empty where they did not change."""
    before, after = alert.found.versions
    return Markdown("") if before == after else Markdown("{} → {}").format(before or "none", after or "none")


def _closed(alert: Alert) -> Markdown:
    why = Markdown(": {}").format(alert.returned) if alert.returned else Markdown("")
    return Markdown("{}; mended{}").format(_alert(alert), why)


def _failed(record: Record) -> Markdown:
    return Markdown("- {}: {}: {}").format(code(record.trial), record.outcome, record.reason or "no reason given")


def _what_to_do(confirmed: Sequence[Alert], commands: Commands) -> Iterator[Markdown]:
    """The commands of the first alerts. A decision is written into the file of alerts."""
    if not confirmed:
        return
    yield Markdown("## What to do")
    yield Markdown(
        "These commands show a slowdown again, and find its first version. Then write `reported` or `accepted` into "
        "the file of alerts, or wait for a version that mends it. The folder `issues` has the commands of every alert."
    )
    for alert in confirmed[:COMMANDS]:
        yield Markdown("{}:").format(code(alert.id))
        yield commands.block(alert.found)


def _section(title: str, lines: Iterator[Markdown]) -> Iterator[Markdown]:
    listed = list(lines)
    if listed:
        yield Markdown("## {}").format(title)
        yield _list(listed, SHOWN, mark="")


def _list(lines: Iterator[Markdown] | list[Markdown], most: int, mark: str = "- ") -> Markdown:
    listed = list(lines)
    shown = [Markdown(mark + line) for line in listed[:most]]
    if len(listed) > most:
        shown.append(Markdown("- and {} more").format(len(listed) - most))
    return Markdown("\n").join(shown)

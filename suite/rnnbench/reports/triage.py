"""The triage page: which alerts are new, mended or open, and which of them a person has to decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from rnnbench.history import MEASURES, SILENCE, Alert, Alerts, Change, Detection, News, without_anchors
from rnnbench.reports.commands import Commands
from rnnbench.reports.escape import Markdown, code, paragraph
from rnnbench.reports.units import change_with_interval, drift_until
from rnnbench.results import fact_sentence
from rnnbench.spelling import count

RECENT = timedelta(days=14)
"""What was mended, got better or is missing since then; and acceptances that run out until then."""
SHOWN = 10
"""Lines of a section that are not folded."""
NAMED = 3
"""Trials that are named in a sentence. More are folded."""
MAGNITUDES = ((0.03, "small"), (0.10, "medium"), (0.50, "large"))
"""Upper bounds of a change. What is larger is very large."""
VERY_LARGE = "very large"
LEGEND = (
    "Changes are new over old, with their 95 % interval. "
    + ", ".join(f"**{word}**: below {100 * bound:.0f} %" for bound, word in MAGNITUDES)
    + f"; **{VERY_LARGE}**: more. A *candidate* is seen by the screen alone, and most are noise: a measurement has to "
    "confirm it. To decide, edit the alert in the file named above; docs/history.md has the states."
)


class _Group(NamedTuple):
    """Alerts of one backend and one range of versions, on one machine."""

    first: Detection
    alerts: list[Alert]


def triage_page(alerts: Alerts, news: News) -> str:
    """The page as Markdown. `alerts` are up to date with `news`; what is not in their file yet is said."""
    return "\n\n".join(map(paragraph, _parts(alerts, news))) + "\n"


def _parts(alerts: Alerts, news: News) -> Iterator[str]:
    now = news.silences.now
    since, until = (now - RECENT).date().isoformat(), (now + RECENT).date().isoformat()
    findings = [alert for alert in alerts.all if alert.is_finding]
    new = [alert for alert in findings if alert.state == "new"]
    candidates = [alert for alert in alerts.all if alert.state == "new" and not alert.is_finding]
    mended = [alert for alert in alerts.all if alert.state == "mended" and (alert.mended or "") >= since]
    still_open = [alert for alert in findings if alert.state in ("confirmed", "reported")]
    accepted = [alert for alert in alerts.all if alert.state == "accepted" and alert.accepted]
    ending = [alert for alert in accepted if alert.accepted and alert.accepted.until <= until]
    better = [detection for levels in news.levels.values() for detection in levels.better() if detection.night >= since]
    yield Markdown("# Triage of {}").format(now.date().isoformat())
    yield _summary(new, candidates, mended, still_open, accepted, ending)
    yield Markdown("Alerts: {}. {}").format(code(str(alerts.file)), _newest(news))
    for warning in _warnings(alerts, news):
        yield Markdown("> **Warning:** {}").format(warning)
    commands = Commands(news.facts.history.runs, news.facts.history.checks)
    if new:
        yield Markdown("## New")
        for group in _groups(new):
            yield from _group(group, commands)
    yield from _section("Mended", (_mended(alert) for alert in mended))
    yield from _section("Still open", (alert_line(alert) for alert in still_open))
    yield from _section("Accepted, and running out", (alert_line(alert) for alert in ending))
    yield from _section("Got better", (Markdown("- {}.").format(alert_sentence(detection)) for detection in better))
    if candidates:
        yield from _section("Candidates", (alert_line(alert) for alert in candidates))
        yield Markdown("The commands of the largest:")
        yield commands.block(max(candidates, key=lambda alert: alert.found.ratio or 1.0).found)
    yield from _section("Nights without data", _missing(news, now.date() - RECENT))
    moves = [move for levels in news.levels.values() for move in levels.moves if move.night >= since]
    yield from _section("Machines", map(_move, moves))
    yield Markdown("## How to read this")
    yield Markdown(LEGEND)


def _summary(
    new: Sequence[Alert],
    candidates: Sequence[Alert],
    mended: Sequence[Alert],
    still_open: Sequence[Alert],
    accepted: Sequence[Alert],
    ending: Sequence[Alert],
) -> Markdown:
    if not (new or candidates or mended or still_open or accepted):
        return Markdown("**There is no alert.**")
    soon = Markdown(" ({} of them until {} days from now)").format(len(ending), RECENT.days) if ending else ""
    return Markdown("**{} new in {}**, {}, {} mended, {} still open, {} accepted{}.").format(
        len(new),
        count(len(_groups(new)), "group"),
        count(len(candidates), "candidate"),
        len(mended),
        len(still_open),
        len(accepted),
        soon,
    )


def _newest(news: News) -> str:
    runs = news.facts.history.nights
    if not runs:
        return "The history has no night: releases of a backfill raise no alert."
    return f"The newest run is {runs[-1].run}, of {_day(runs[-1].started)}; {count(len(runs), 'run')} in all."


def _warnings(alerts: Alerts, news: News) -> Iterator[str]:
    yield from news.facts.history.warnings
    before = {alert.id: alert for alert in alerts.as_read}
    if changed := sum(before.get(alert.id) != alert for alert in alerts.all):
        yield f"{count(changed, 'alert')} differ here from the file; rnnbench history alerts writes them into it"
    for machine, levels in news.levels.items():
        if not levels.has_anchors:
            yield without_anchors(machine)


def _groups(alerts: Iterable[Alert]) -> list[_Group]:
    groups: dict[tuple[object, ...], _Group] = {}
    for alert in sorted(alerts, key=_importance):
        detection = alert.found
        before, after = detection.versions
        key = (detection.machine, detection.backend, *((before, after) if before != after else (detection.night[:10],)))
        groups.setdefault(key, _Group(detection, [])).alerts.append(alert)
    return list(groups.values())


def _importance(alert: Alert) -> tuple[bool, bool, float, str]:
    detection = alert.found
    return detection.is_level, not detection.whole_backend, -(detection.ratio or 1.0), alert.id


def _group(group: _Group, commands: Commands) -> Iterator[Markdown]:
    detection = group.first
    yield Markdown("### {}, from {} on").format(detection.backend or "Missing runs", _day(detection.night))
    if detection.what != SILENCE:
        yield Markdown("{} Machine {}.").format(_versions(detection), code(detection.machine))
    yield Markdown("\n").join(alert_line(alert) for alert in group.alerts)
    members = sorted({member for alert in group.alerts for member in alert.found.members})
    if len(members) > NAMED:
        listed = Markdown("\n").join(Markdown("- {}").format(code(member)) for member in members)
        yield Markdown("<details><summary>The {}</summary>\n\n{}\n\n</details>").format(
            count(len(members), "trial"), listed
        )
    yield commands.block(detection)


def _versions(detection: Detection) -> Markdown:
    before, after = detection.versions
    if before != after:
        return Markdown("Versions: {} → {}.").format(before or "none", after or "none")
    return Markdown("The versions did not change ({}).").format(after or "none")


def alert_line(alert: Alert) -> Markdown:
    """One alert as an item of a list, with what was decided about it."""
    parts: list[str] = [alert_sentence(alert.found)]
    if alert.ab:
        change = change_with_interval(alert.ab.ratio, alert.ab.interval)
        parts.append(Markdown("measured on {} by ab: {}").format(alert.ab.on, change))
    if alert.reported:
        parts.append(Markdown("reported on {}: {}").format(alert.reported.on, alert.reported.issue))
    if alert.accepted:
        out = "accepted until" if alert.state == "accepted" else "was accepted until"
        parts.append(
            Markdown("{} {} by {}: {}").format(out, alert.accepted.until, alert.accepted.by, alert.accepted.why)
        )
    if alert.note:
        parts.append(Markdown("note: {}").format(alert.note))
    return Markdown("- {} ({})").format(Markdown("; ").join(parts), code(alert.id))


def _mended(alert: Alert) -> Markdown:
    if alert.returned:
        return Markdown("{}; closed on {}: {}").format(alert_line(alert), alert.mended or "", alert.returned)
    return Markdown("{}; returned by {}").format(alert_line(alert), alert.mended or "")


def alert_sentence(detection: Detection) -> Markdown:
    """One sentence: what became worse or better, since when, in how many trials."""
    if detection.what == SILENCE:
        has = Markdown("has run no case")
        if not detection.whole_backend:
            has = Markdown("has not run {}").format(_names(detection.members, "of its case"))
        told = Markdown("Machine {} {} since {}").format(code(detection.machine), has, _day(detection.night))
        return Markdown("{}: {}").format(told, detection.detail) if detection.detail else told
    if not detection.is_level:
        what = fact_sentence(detection.what, detection.before, detection.after, detection.detail)
        return Markdown("{}: **{}** (since {})").format(_subject(detection), what, _day(detection.night))
    title = MEASURES[detection.what].title
    change = change_with_interval(detection.ratio or 1.0, detection.interval)
    return Markdown("{}: **{} {}** since {}{}, {}").format(
        _subject(detection),
        title,
        change,
        _day(detection.night),
        drift_until(detection.until),
        _magnitude(detection.ratio or 1.0),
    )


def _subject(detection: Detection) -> Markdown:
    if detection.whole_backend:
        return Markdown("{}, all {}").format(detection.backend, count(len(detection.members), "trial"))
    return Markdown("{}, {}").format(detection.backend, _names(detection.members))


def _names(members: Sequence[str], noun: str = "trial") -> Markdown:
    if len(members) > NAMED:
        return Markdown("{}").format(count(len(members), noun))
    return Markdown(", ").join(map(code, members))


def _magnitude(ratio: float) -> str:
    size = max(ratio, 1 / ratio) - 1
    return next((word for bound, word in MAGNITUDES if size < bound), VERY_LARGE)


def _missing(news: News, since: date) -> Iterator[Markdown]:
    for machine, case, days in news.silences.missing(since):
        nights = days[0].isoformat()
        if len(days) > 1:
            nights = f"{nights} to {days[-1].isoformat()}, {len(days)} nights"
        yield Markdown("- {}: {} did not run on machine {}.").format(nights, case, code(machine))


def _move(move: Change) -> Markdown:
    change = change_with_interval(move.ratio, move.interval)
    became = "slower" if move.ratio > 1 else "faster"
    text = "- {}: machine {} became {}, {} {} of its anchors. No program is blamed."
    return Markdown(text).format(_day(move.night), code(move.machine), became, MEASURES[move.measure].title, change)


def _section(title: str, lines: Iterable[Markdown]) -> Iterator[Markdown]:
    """A list under a title; nothing where it is empty. What is beyond the first lines is folded."""
    listed = list(lines)
    if not listed:
        return
    yield Markdown("## {}").format(title)
    yield Markdown("\n").join(listed[:SHOWN])
    if more := listed[SHOWN:]:
        yield Markdown("<details><summary>{} more</summary>\n\n{}\n\n</details>").format(
            len(more), Markdown("\n").join(more)
        )


def _day(night: str) -> str:
    return datetime.fromisoformat(night).date().isoformat()

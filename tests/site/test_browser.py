"""The site in a real headless Chromium, from `file://`: every page, link, filter and sort, on phone and desktop."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import date, timedelta
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import fake_records as fake
import numpy as np
import pytest
from made_site import DISTURBED, HOSTILE, HOSTILE_SHOWN, NIGHTS, SAMPLES
from quick_tests import for_proof
from waiting import PATIENCE_S

from rnnbench.history import Alert, Alerts, Detection, Measured
from rnnbench.reports import units
from rnnbench.results import compare_runs, read_run
from rnnbench.results.ranking import RATIO_CONFIDENCE
from rnnbench.results.verdict import ERROR_RATE, SMALLEST, judge_apart, judge_once
from rnnbench.site import write_site
from rnnbench.site.numbers import scaled

PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
SMALLEST_PHONE = {"width": 320, "height": 640}
LISTED = ("index", "chooser", "compare", "trials", "conformance", "alerts", "releases", "machines", "method")
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"focus-order-semantics": {"enabled": True}},
    "resultTypes": ["violations"],
}
COMMITTED = Path(__file__).parents[2] / "reports" / "site"
LOADED = """() => {
  const told = Array.from(document.querySelectorAll("[role=status]"));
  return !told.length || told.some((each) => each.textContent);
}"""
"""Whether the scripts of a page have shown their data."""
COUNTS_SHIFTS = """window.shifted = 0; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shifted += entry.value;
}).observe({ type: "layout-shift", buffered: true });"""
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
WELL_STILL = 0.05
"""Half of the layout shift that a good page may have (web.dev/cls)."""


LABELS = """() => Array.from(document.querySelectorAll("main svg")).flatMap((svg) => {
  const drawing = svg.getBoundingClientRect();
  const labels = Array.from(svg.children).filter((one) => one.tagName === "text");
  const places = labels.map((one) => [one.textContent, one.getBoundingClientRect()]);
  const touching = ([one, a], [other, b]) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom ? [one + " touches " + other] : [];
  return places.flatMap((place, at) => [
    ...places.slice(at + 1).flatMap((other) => touching(place, other)),
    ...(place[1].left < drawing.left - 1 || place[1].right > drawing.right + 1 ? [place[0] + " is cut off"] : []),
  ]);
})"""
"""What is wrong with the labels of a page's drawings."""


class Watched:
    """A page that keeps what it complains of and what it asks of the network."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", self._failed)
        page.on("request", lambda request: self._asked(request.url))

    def _failed(self, request: Any) -> None:
        """What was under way when another page was opened has not failed."""
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"failed: {request.url}: {request.failure}")

    def _asked(self, url: str) -> None:
        if not url.startswith(("file://", "data:", "about:")):
            self.complaints.append(f"asked for {url}")

    def open(self, root: Path, name: str) -> Any:
        path, _, state = name.partition("#")
        self.page.goto((root / path).as_uri() + (f"#{state}" if state else ""))
        self.page.wait_for_function(LOADED)
        return self.page

    def show_on(self, size: dict[str, int], scheme: str = "light") -> None:
        """From here on it is shown so, and has complained of nothing."""
        self.page.set_viewport_size(size)
        self.page.emulate_media(media="null", color_scheme=scheme)
        self.complaints.clear()

    def leave(self) -> None:
        """Forget what a test did to the page and stored."""
        self.page.unroute_all()
        if self.page.url.startswith("file:"):
            self.page.evaluate("localStorage.clear()")
        self.page.goto("about:blank")


@pytest.fixture(scope="module")
def context(chromium) -> Iterator[Any]:
    context = chromium.new_context()
    context.set_default_timeout(1000 * PATIENCE_S)
    yield context
    context.close()


@pytest.fixture(scope="module")
def only_page(context) -> Watched:
    """That of most tests: to open and close another one takes longer than many a test."""
    return Watched(context.new_page())


@pytest.fixture
def watched(only_page) -> Iterator[Watched]:
    yield only_page
    only_page.leave()


@pytest.fixture
def phone(watched) -> Watched:
    watched.show_on(PHONE)
    return watched


@pytest.fixture
def desktop(watched) -> Watched:
    watched.show_on(DESKTOP)
    return watched


@pytest.fixture
def own_page(context) -> Iterator[Watched]:
    """For what stays in a page: a script before all others."""
    watched = Watched(context.new_page())
    watched.show_on(DESKTOP)
    yield watched
    watched.page.close()


def every_page(root: Path) -> list[str]:
    return [str(file.relative_to(root)) for file in sorted(root.rglob("*.html"))]


def a_page_of_each_kind(root: Path) -> list[str]:
    """The largest of the documents, the largest of the trials, and each other page."""
    largest = {
        re.sub(r"-.*|/.*", "", name): name
        for name in sorted(every_page(root), key=lambda name: (root / name).stat().st_size)
    }
    return sorted(largest.values())


SHOWN = pytest.mark.parametrize("shown", [a_page_of_each_kind, *for_proof(every_page)])


def trial_page(made: Any, backend: str) -> str:
    record = next(record for record in made.runs[-1].records if record.backend == backend)
    return next(f"trials/{f.name}" for f in (made.root / "trials").iterdir() if record.trial in f.read_text("utf-8"))


def stored(file: Path) -> Any:
    """The content of a data file."""
    text = file.read_text("utf-8")
    return json.loads(text[text.index(",") + 1 : text.rindex(")")])


def night_of(made: Any, number: int) -> dict[str, Any]:
    """A night of the index that the compare page loads, with its id and the name of its data file."""
    (index,) = (made.root / "data").glob("nights-*.js")
    return stored(index)["nights"][number]


def address_of_nights(made: Any, a: int, b: int) -> str:
    return f"a={night_of(made, a)['id']}&b={night_of(made, b)['id']}"


def rows(page: Any, table: str) -> list[list[str]]:
    return page.evaluate(
        "(id) => Array.from(document.querySelector(id).tBodies[0].rows).filter((r) => !r.hidden)"
        ".map((r) => Array.from(r.cells, (c) => c.textContent))",
        table,
    )


def open_on_phones(watched: Watched, root: Path, name: str) -> Any:
    """A page on the smallest phone, where its labels lie closest, and then on a usual one: no further load of it."""
    watched.page.set_viewport_size(SMALLEST_PHONE)
    page = watched.open(root, name)
    assert page.evaluate(LABELS) == [], name
    for size in (SMALLEST_PHONE, PHONE):
        page.set_viewport_size(size)
        too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert too_wide <= 0, (name, size)
    return page


@SHOWN
def test_every_page_fits_a_phone_runs_no_text_of_records_and_keeps_the_console_empty(made, phone, shown):
    """And no label of a drawing touches another one or is cut off."""
    for name in shown(made.root):
        page = open_on_phones(phone, made.root, name)
        assert page.evaluate("window.hit === undefined && document.images.length === 0"), name
    assert phone.complaints == []


def test_every_link_that_scripts_make_leads_to_a_page(made, desktop):
    found: set[str] = set()
    for name in ("trials.html", "chooser.html", "compare.html"):
        page = desktop.open(made.root, name)
        found |= set(
            page.evaluate("Array.from(document.querySelectorAll('main tbody a'), (a) => a.href.split('#')[0])")
        )
    assert len(found) >= len(made.runs[-1].records)
    assert all(Path(url.removeprefix("file://")).is_file() for url in found)


@pytest.mark.parametrize(
    "names",
    [("trials.html", "alerts.html"), *for_proof((("index.html", "chooser.html", "compare.html", "conformance.html"),))],
    ids=str,
)
def test_every_filter_changes_the_address_and_goes_back(made, desktop, names):
    used = 0
    for name in names:
        page = desktop.open(made.root, name)
        for control in page.evaluate("Array.from(document.querySelectorAll('.filters [name]'), (c) => c.name)"):
            field = page.locator(f".filters [name={control}]")
            if not field.is_visible():
                continue
            before = field.input_value()
            if field.evaluate("(c) => c.tagName") == "SELECT":
                options = field.evaluate("(c) => Array.from(c.options, (o) => o.value)")
                other = next((value for value in options if value != before), None)
                if other is None:
                    continue
                field.select_option(other)
            else:
                other = "7"
                field.fill(other)
            page.wait_for_function("(name) => new URLSearchParams(location.hash.slice(1)).has(name)", arg=control)
            assert field.input_value() == other, (name, control)
            page.go_back()
            page.wait_for_function("(name) => !new URLSearchParams(location.hash.slice(1)).has(name)", arg=control)
            assert field.input_value() == before, (name, control)
            used += 1
    assert used > 3 * len(names)
    assert desktop.complaints == []


@pytest.mark.proof
def test_an_address_of_nonsense_opens_the_page_as_it_is(made, desktop):
    for name in ("trials.html", "chooser.html", "compare.html", "conformance.html", "alerts.html"):
        for nonsense in (
            "sort=1.5&q=",
            "sort=--1",
            "a=-1&b=1e9&by=__proto__&night=x",
            "%E0%A4%A",
            "period=1e999&workload=../x",
        ):
            desktop.open(made.root, f"{name}#{nonsense}")
    assert desktop.complaints == []


@pytest.mark.proof
def test_the_text_of_a_filter_is_one_step_back(made, desktop):
    page = desktop.open(made.root, "trials.html")
    page.locator("[name=q]").press_sequentially("mlir")
    page.wait_for_function("() => location.hash === '#q=mlir'")
    page.go_back()
    page.wait_for_function("() => location.hash === ''")
    assert page.locator("[name=q]").input_value() == ""


def test_words_are_found_in_any_order_and_the_network_is_one_of_them(made, desktop):
    """The name of a trial has its case and its size, and not always its network."""
    page = desktop.open(made.root, "trials.html#q=-c8-%20LSTM%20%20fakemlir%20")
    page.wait_for_function("() => document.querySelectorAll('#trials tbody tr').length > 0")
    assert {(row[1], row[5]) for row in rows(page, "#trials")} == {("fakemlir:linalg", "8")}
    page = desktop.open(made.root, "trials.html#q=gru%20fakelib")
    page.wait_for_function("() => document.querySelector('#answer').textContent.startsWith('0 of')")


def test_without_scripts_nothing_is_shown_that_needs_them(made, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    names = ("trials.html", "chooser.html", "compare.html", "conformance.html", "alerts.html")
    for name in (*names, trial_page(made, "fakemlir")):
        page.goto((made.root / name).as_uri())
        shown = page.locator(".filters:visible, #theme:visible, #chart:visible, table:not(:has(tbody tr)):visible")
        assert shown.count() == 0, name
    context.close()


def test_a_very_long_word_widens_no_page(made, phone):
    page = phone.open(made.root, trial_page(made, "fakemlir"))
    page.evaluate(
        "document.querySelectorAll('main :is(h1 span, dd, dt, p, li, h2, summary)')"
        ".forEach((each) => (each.textContent = 'W'.repeat(400)))"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.proof
def test_a_very_long_name_hides_no_column(made, desktop):
    page = desktop.open(made.root, "trials.html")
    page.evaluate("document.querySelector('#trials tbody a').textContent = 'W'.repeat(400)")
    column, window = page.evaluate(
        "[document.querySelector('#trials td').offsetWidth, document.querySelector('#trials').parentNode.clientWidth]"
    )
    assert column < window / 2


def test_an_address_with_filters_opens_as_it_was(made, desktop):
    page = desktop.open(made.root, "trials.html#backend=fakemlir&sort=-7")
    page.wait_for_function("() => document.querySelectorAll('#trials tbody tr').length > 0")
    assert {row[1] for row in rows(page, "#trials")} == {"fakemlir:linalg"}
    assert page.locator("[name=backend]").input_value() == "fakemlir"
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("bound, a call")


def test_tables_sort_by_figures_and_go_back(made, desktop):
    page = desktop.open(made.root, "trials.html")
    unsorted = rows(page, "#trials")
    values = """Array.from(document.querySelectorAll("#trials tbody td:nth-child(8)"), (c) => Number(c.dataset.sort))
        .filter((value) => value)"""
    page.get_by_role("button", name="bound, a call").click()
    page.wait_for_selector("th[aria-sort=ascending]")
    up = page.evaluate(values)
    assert all(a <= b for a, b in pairwise(up))
    page.get_by_role("button", name="bound, a call").click()
    page.wait_for_selector("th[aria-sort=descending]")
    assert page.evaluate(values) == up[::-1]
    page.go_back()
    page.go_back()
    page.wait_for_function("() => !document.querySelector('th[aria-sort]')")
    assert sorted(rows(page, "#trials")) == sorted(unsorted)


@pytest.mark.parametrize(
    ("scheme", "rules", "names", "size"),
    [
        ("light", RULES, ("index", "chooser", "trials"), SMALLEST_PHONE),
        ("dark", {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}, ("index", "alerts"), DESKTOP),
        *for_proof(("light", RULES, LISTED, DESKTOP), ("light", RULES, LISTED, SMALLEST_PHONE)),
    ],
)
def test_contrast_and_structure_pass_axe(made, watched, scheme, rules, names, size):
    pytest.importorskip("axe_playwright_python")
    axe = (files("axe_playwright_python") / "axe.min.js").read_text()
    watched.show_on(size, scheme)
    for name in (*(f"{name}.html" for name in names), trial_page(made, "fakemlir")):
        page = watched.open(made.root, name)
        page.evaluate(axe)
        found = page.evaluate("(rules) => axe.run(document, rules)", rules)["violations"]
        told = [(rule["id"], node["html"][:120]) for rule in found for node in rule["nodes"]]
        assert told == [], name


@pytest.mark.parametrize("name", ["index", *for_proof("chooser", "conformance", "machines")])
def test_each_table_has_the_name_of_the_heading_above_it(made, desktop, name):
    page = desktop.open(made.root, f"{name}.html")
    tables = page.locator("main table")
    assert tables.count()
    names = page.evaluate(
        "Array.from(document.querySelectorAll('main table'), (each) => each.ariaLabelledByElements[0].textContent)"
    )
    headings = page.locator("main :is(h1, h2, h3)").all_text_contents()
    assert set(names) <= set(headings)
    assert len(names) == tables.count()


def test_hostile_names_and_reasons_are_text(made, desktop):
    page = desktop.open(made.root, "trials.html#outcome=build-failed")
    page.wait_for_function("() => document.querySelectorAll('#trials tbody tr').length === 1")
    assert HOSTILE_SHOWN in rows(page, "#trials")[0][0]
    page.locator("#trials a").click()
    page.wait_for_selector("h1.trial")
    assert HOSTILE_SHOWN in page.locator("main .warning").all_inner_texts()[-1]
    page = desktop.open(made.root, "conformance.html")
    failed = page.locator("#versions ~ ul li").all_inner_texts()
    assert any(text.count(HOSTILE_SHOWN) == 2 for text in failed), "the trial and the reason"
    assert desktop.complaints == []


def test_the_keyboard_alone_reaches_the_content_and_the_theme(made, desktop):
    page = desktop.open(made.root, "index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "theme":
            break
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("#theme").inner_text() == "Light"
    page = desktop.open(made.root, "alerts.html")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.proof
def test_the_distribution_of_a_trial_is_a_histogram_with_its_count_and_unit(made, desktop):
    page = desktop.open(made.root, trial_page(made, "fakemlir"))
    assert page.locator("svg.histogram").count() == 1, "the run keeps samples of the bound path alone"
    assert page.locator("svg.histogram").bounding_box()["height"] > 100
    assert re.fullmatch(r"[\d.]+\sµs", page.locator("svg.histogram text").last.text_content())
    told = [
        text.replace("\N{NO-BREAK SPACE}", " ") for text in page.locator("#distribution ~ p.note").all_inner_texts()
    ]
    said = next(text for text in told if text.startswith(f"Histogram of {SAMPLES} samples"))
    assert re.search(r"A bar is [\d.]+ µs wide; the highest has \d+ samples\.", said)
    assert "1 sample above" in said
    assert "up to 5.00 ms" in said
    assert f"In front: {DISTURBED} samples of disturbed blocks." in said
    assert "No histogram: the single samples of this run were not kept." in told


@pytest.mark.proof
def test_sorting_a_table_of_the_page_itself_goes_back(made, desktop):
    page = desktop.open(made.root, "conformance.html")
    table = "main table[data-sortable]"
    unsorted = rows(page, table)
    page.get_by_role("button", name="conforming").first.click()
    page.wait_for_selector("th[aria-sort=ascending]")
    assert rows(page, table) != unsorted
    page.go_back()
    page.wait_for_function("() => !document.querySelector('th[aria-sort]')")
    assert rows(page, table) == unsorted


@pytest.mark.proof
def test_the_committed_site_fits_a_phone_and_keeps_the_console_empty(phone):
    """Real names are longer than made-up ones, and real figures lie closer. With the largest pages of trials."""
    trials = sorted((COMMITTED / "trials").iterdir())
    shown = {*trials[::8], *sorted(trials, key=lambda file: file.stat().st_size)[-3:]}
    drawings = 0
    for name in (*(f"{name}.html" for name in LISTED), *(f"trials/{file.name}" for file in sorted(shown))):
        page = open_on_phones(phone, COMMITTED, name)
        drawings += page.locator("main svg:has(> text)").count()
    assert drawings >= len(shown)
    assert phone.complaints == []


def test_trials_of_one_machine_are_listed(desktop):
    page = desktop.open(COMMITTED, "machines.html")
    heading = page.locator("h2").last
    heading.locator("xpath=following-sibling::p[1]").get_by_role("link", name="Its trials").click()
    page.wait_for_function("() => document.getElementById('answer')?.textContent.includes(' of ')")
    shown, _, all_trials, _ = page.locator("#answer").inner_text().split()
    assert 0 < int(shown) < int(all_trials)


@pytest.mark.proof
def test_trials_of_two_machines_are_told_apart_and_found_by_the_machine(tmp_path, desktop):
    runs = [
        read_run(fake.write_run(tmp_path / cpu, [fake.record()], machine={"cpu": cpu, "cores": 2}))
        for cpu in ("This CPU", "Other CPU")
    ]
    page = desktop.open(write_site(runs, None, tmp_path / "site").parent, "trials.html#q=other")
    page.wait_for_function("() => document.getElementById('answer').textContent.startsWith('1 of 2 ')")
    assert page.locator("#trials small").inner_text().startswith("Other CPU [")


def test_without_a_history_the_overview_begins_with_what_is_fastest(made, tmp_path, desktop):
    headings = "Array.from(document.querySelectorAll('main h2'), (each) => each.id)"
    page = desktop.open(write_site(made.runs[-1:], None, tmp_path / "site").parent, "index.html")
    page.wait_for_selector(".heat")
    assert page.evaluate(headings)[0] == "fastest"
    assert page.locator(".answers a").first.bounding_box()["y"] < 0.6 * DESKTOP["height"]
    page = desktop.open(made.root, "index.html")
    assert page.evaluate(headings)[-1] == "fastest", "what moved comes first where there are nights"


@pytest.mark.parametrize("name", ["chooser", *for_proof("compare", "trials")])
def test_a_legend_below_a_long_table_is_a_link_away_from_its_head(made, desktop, name):
    page = desktop.open(made.root, f"{name}.html")
    page.get_by_role("link", name="What the columns and signs mean").click()
    assert page.locator("#legend").bounding_box()["y"] < DESKTOP["height"]


def test_no_paragraph_is_wider_than_a_reader_s_eye_follows(made, desktop):
    page = desktop.open(made.root, "machines.html")
    widest = (
        "Math.max(...Array.from(document.querySelectorAll('main p'), (each) => each.getBoundingClientRect().width))"
    )
    assert page.evaluate(widest) < 0.62 * DESKTOP["width"]


def test_print_leaves_navigation_and_filters_out(made, desktop):
    page = desktop.open(made.root, "index.html")
    page.emulate_media(media="print")
    assert not page.locator("header").is_visible()
    assert not page.locator(".filters").is_visible()
    assert page.locator(".heat").first.is_visible()


@pytest.mark.proof
def test_print_says_what_the_filters_are_set_to_and_cuts_no_command(made, desktop):
    page = desktop.open(made.root, "chooser.html")
    page.locator("[name=period]").fill("10")
    assert not page.locator(".chosen").is_visible()
    page.set_viewport_size({"width": 700, "height": 1000})  # an A4 page between Chromium's margins
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    chosen = page.locator(".chosen").inner_text()
    assert re.fullmatch(r"Workload: .+; Frame period \(ms\): 10", chosen), chosen
    assert page.locator("#choices code").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 700


def test_the_head_of_a_table_is_printed_on_each_of_its_pages(made, desktop):
    """Chromium leaves the boxes of buttons out of a head that it repeats, and their texts stay."""
    page = desktop.open(made.root, "trials.html")
    page.emulate_media(media="print")
    shown = "(buttons) => Array.from(buttons, (one) => getComputedStyle(one).display)"
    assert set(page.locator("#trials th button").evaluate_all(shown)) == {"contents"}
    page.emulate_media(media="screen")
    assert "contents" not in page.locator("#trials th button").evaluate_all(shown)


def test_a_chart_has_the_colours_that_the_system_forces(made, own_page):
    """Also where another theme was chosen before: the page is as dark as the system says."""
    page = own_page.page
    page.emulate_media(forced_colors="active", color_scheme="dark")
    page.add_init_script(
        "window.fills = new Set(); const fill = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = "
        "function (...all) { window.fills.add(this.fillStyle); return fill.apply(this, all); };"
    )
    own_page.open(made.root, trial_page(made, "fakemlir"))
    if page.locator("#theme").inner_text() == "Light":
        page.locator("#theme").click()
    page.evaluate("window.fills.clear(); window.dispatchEvent(new Event('themed'))")
    page.wait_for_function("() => window.fills.size > 0")
    assert page.evaluate("Array.from(window.fills)") == ["#ffffff"]


def test_an_open_alert_of_any_name_leads_to_its_commands(tmp_path, phone):
    found = Detection(
        machine="fake",
        backend=HOSTILE,
        what="bound",
        evidence="compared",
        night="2026-01-30T02:00:00",
        run="night",
        ratio=1.2,
        versions=("p 1", "p 2"),
        members=(f"case/{HOSTILE}/looped/h1-35a65643", "W" * 1_000),
    )
    measured = Measured(ratio=1.2, interval=(1.19, 1.21), versions=("1", "2"), on="2026-01-30")
    alerts = Alerts.read(tmp_path / "alerts.yaml").put(Alert(id=HOSTILE, state="confirmed", ab=measured, found=found))
    run = read_run(fake.write_run(tmp_path / "run", [fake.record()]))
    root = write_site([run], None, tmp_path / "site", alerts).parent
    page = open_on_phones(phone, root, "index.html")
    page.get_by_role("link", name="What to do").click()
    page.wait_for_selector("details:target")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    commands = page.locator("details:target pre")
    assert not commands.is_visible()
    page.locator("details:target summary").press("Enter")
    assert commands.inner_text().startswith("rnnbench ab cases/case.yaml")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.evaluate("window.hit === undefined && document.images.length === 0")
    assert phone.complaints == []


@pytest.mark.proof
def test_a_dark_page_prints_on_white(made, watched):
    watched.show_on(DESKTOP, "dark")
    page = watched.open(made.root, "index.html")
    colours = "['color', 'backgroundColor'].map((name) => getComputedStyle(document.body)[name])"
    assert page.evaluate(colours)[1] != "rgb(255, 255, 255)"
    page.emulate_media(media="print")
    assert page.evaluate(colours) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]


def test_a_chart_has_a_line_and_says_its_newest_night_with_the_interval(made, desktop):
    page = desktop.open(made.root, trial_page(made, "fakemlir"))
    assert page.locator("#chart canvas").count() == 1
    assert re.search(
        r"2026-01-14: [\d.]+ µs \([\d.]+ µs to [\d.]+ µs\); .*2\.0\.0", page.locator("#reading").inner_text()
    )
    page.locator("[name=measure]").select_option("build")
    page.wait_for_function("() => document.getElementById('reading')?.textContent.includes('1.50 s')")
    assert desktop.complaints == []


@pytest.mark.proof
def test_the_arrow_keys_read_a_chart_night_by_night(made, desktop):
    page = desktop.open(made.root, trial_page(made, "fakemlir"))
    chart = page.get_by_role("slider", name="Night of the chart")
    chart.focus()
    presses = {"ArrowRight": 14, "ArrowLeft": 13, "Home": 1, "End": 14}
    for key, day in (*presses.items(), *presses.items()):
        chart.press(key)
        assert page.locator("#reading").inner_text().startswith(f"2026-01-{day:02d}: "), key
        assert chart.get_attribute("aria-valuetext") == page.locator("#reading").inner_text()
        assert chart.get_attribute("aria-valuenow") == str(day - 1)
    page.locator("[name=measure]").select_option("build")
    page.wait_for_function("() => document.getElementById('reading')?.textContent.includes('1.50 s')")
    assert desktop.complaints == []


def test_verdicts_of_two_nights_are_those_of_compare(made, desktop):
    page = desktop.open(made.root, f"compare.html#{address_of_nights(made, 5, 13)}")
    page.wait_for_function("() => document.querySelectorAll('#compared tbody tr').length > 3")
    shown = {row[1]: row[0] for row in rows(page, "#compared") if "no verdict" not in row[0]}
    found = compare_runs(made.runs[5], made.runs[13]).latencies
    assert shown == {change.trial: change.verdict for change in found if change.path == "bound"}
    assert "SLOWER" in shown.values()
    # A cell has the latency, and below it the range of the processes.
    figures = {change.trial: (change.base, change.new) for change in found if change.path == "bound"}
    for row in rows(page, "#compared"):
        for cell, seconds in zip(row[2:4], figures[row[1]], strict=True):
            assert cell.startswith(units.seconds(seconds))


@pytest.mark.proof
def test_a_latency_that_is_not_above_zero_has_no_ratio_and_no_verdict(made, desktop):
    name = night_of(made, 13)["file"]
    night = stored(made.root / "data" / f"{name}.js")
    for row in night:
        row[5] = [[0 for _ in path] for path in row[5]]
    body = f'rnnbench.put("{name}",{json.dumps(night)});'
    desktop.page.route(f"**/data/{name}.js", lambda route: route.fulfill(body=body))
    page = desktop.open(made.root, f"compare.html#{address_of_nights(made, 5, 13)}")
    page.wait_for_function("() => document.querySelectorAll('#compared tbody tr').length > 3")
    assert {(row[0], row[4]) for row in rows(page, "#compared")} == {("no verdict: a latency is not above zero", "—")}
    assert desktop.complaints == []


def wait_until_held(page: Any, held: list[Any]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not held:
        assert time.monotonic() < until, "it was not loaded"
        page.wait_for_timeout(20)


def test_what_an_earlier_choice_loads_later_fills_no_list_of_the_newer_one(made, desktop):
    listed = "Array.from(document.querySelector('[name=a]').options, (option) => option.text)"
    held: list[Any] = []
    first = night_of(made, 0)
    desktop.page.route(f"**/data/{first['file']}.js", lambda route: held.append(route))
    page = desktop.open(made.root, "compare.html")
    nights = page.evaluate(listed)
    page.locator("[name=by]").select_option("backends")
    page.locator("[name=night]").select_option(first["id"])
    wait_until_held(page, held)
    page.locator("[name=by]").select_option("nights")
    assert page.evaluate(listed) == nights
    held[0].continue_()
    page.evaluate("(name) => rnnbench.load(name).then(() => null)", first["file"])
    assert page.evaluate(listed) == nights


def test_verdicts_in_the_browser_are_those_of_results(made, desktop):
    page = desktop.open(made.root, "compare.html")
    chance = np.random.default_rng(0)
    cases, expected = [], []
    for _ in range(300):
        base, new = (list(np.exp(chance.normal(0, chance.choice([0.002, 0.02]), chance.integers(1, 9)))) for _ in "ab")
        new = [value * chance.choice([1.0, 1.02, 0.95]) for value in new]
        both = min(len(base), len(new))
        cases.append([base, new])
        apart = judge_apart(base, new)
        pairs = judge_once([b / a for a, b in zip(base[:both], new[:both], strict=True)], confidence=RATIO_CONFIDENCE)
        expected.append((apart, pairs))
    made_here = page.evaluate(
        "([cases, smallest, error, confidence]) => cases.map(([a, b]) => "
        "[verdict.apart(a, b, smallest, error), verdict.pairs(a, b, smallest, confidence)])",
        [cases, SMALLEST, ERROR_RATE, RATIO_CONFIDENCE],
    )
    for both, answers in zip(expected, made_here, strict=True):
        for judged, answer in zip(both, answers, strict=True):
            assert answer["verdict"] == judged.verdict
            assert answer["ratio"] == pytest.approx(judged.ratio, rel=1e-9)
            assert (answer["interval"] is None) == (judged.interval is None)
            if judged.interval:
                assert np.log(answer["interval"]) == pytest.approx(np.log(judged.interval), rel=1e-6, abs=1e-9)


def test_the_chooser_shows_what_fits_in_the_order_of_the_ranking(made, desktop):
    page = desktop.open(made.root, "chooser.html")
    all_rows = rows(page, "#choices")
    assert {row[0] for row in all_rows} >= {"library", "authored"}
    page.locator("[name=period]").fill("0.02")
    page.wait_for_function(
        "(count) => document.querySelectorAll('#choices tbody tr').length < count", arg=len(all_rows)
    )
    for row in rows(page, "#choices"):
        late = float(row[7].split()[0]) * (1e-3 if "ms" in row[7] else 1e-6)
        assert late <= int(row[4]) * 2e-5
    page.locator("[name=build]").fill("0.001")
    page.wait_for_function("() => document.getElementById('answer')?.textContent.startsWith('0 of')")


def test_a_data_file_that_is_missing_is_a_sentence(made, desktop):
    page = desktop.page
    page.route("**/data/list-*.js", lambda route: route.abort())
    page.goto((made.root / "trials.html").as_uri())
    page.wait_for_function("() => document.getElementById('answer')?.textContent.includes('could not be loaded')")


@pytest.mark.parametrize("lacking", ["data/list-*.js", *for_proof("static/site.js", "static/trials.js")])
def test_a_page_whose_files_do_not_come_says_that_it_loads(made, desktop, lacking):
    """The file is slow, or it was not copied."""
    page = desktop.page
    page.route(f"**/{lacking}", lambda route: None if lacking.startswith("data") else route.abort())
    page.goto((made.root / "trials.html").as_uri(), wait_until="commit")
    page.wait_for_selector("#answer", state="attached")
    assert_loading(page)


@pytest.mark.parametrize("name", [*for_proof("chooser", "compare"), "trials"])
def test_nothing_on_a_page_moves_when_its_data_come(made, own_page, name):
    page, held = own_page.page, []
    page.add_init_script(COUNTS_SHIFTS)
    page.route("**/data/*.js", lambda route: held.append(route))
    page.goto((made.root / f"{name}.html").as_uri(), wait_until="commit")
    wait_until_held(page, held)
    page.evaluate(DRAWN)
    assert_loading(page)
    page.route("**/data/*.js", lambda route: route.continue_())
    for route in held:
        route.continue_()
    page.wait_for_function(LOADED)
    page.wait_for_function("() => document.getElementById('answer').textContent")
    page.evaluate(DRAWN)
    assert page.evaluate("window.shifted") < WELL_STILL


def assert_loading(page: Any) -> None:
    told = page.evaluate("getComputedStyle(document.getElementById('answer'), '::before').content")
    assert told.startswith('"Loading the data. If this stays, ')


@pytest.mark.parametrize("name", [*for_proof("chooser"), "compare"])
def test_nothing_of_an_earlier_choice_is_shown_while_the_data_of_a_new_one_load(made, desktop, name):
    """Also if they do not come at all. Going back shows the earlier choice again, and no failure of the other one."""
    if name == "chooser":
        root, control, at, file = COMMITTED, "workload", 1, "chooser-*-h512-*"
    else:
        root, control, at, file = made.root, "a", NIGHTS - 1, night_of(made, 0)["file"]
    shown = """() => document.querySelector("main tbody tr") && document.getElementById("answer").textContent"""
    held: list[Any] = []
    desktop.page.route(f"**/data/{file}.js", lambda route: held.append(route))
    page = desktop.open(root, f"{name}.html")
    earlier = page.wait_for_function(shown).json_value()
    page.locator(f"[name={control}]").select_option(index=at)
    wait_until_held(page, held)
    assert_loading(page)
    assert not page.locator("main tbody tr").first.is_visible()
    page.go_back()
    page.wait_for_function("(earlier) => document.getElementById('answer').textContent === earlier", arg=earlier)
    held[0].abort()
    lacking = held[0].request.url.rpartition("/")[2].removesuffix(".js")
    page.evaluate("(lacking) => rnnbench.load(lacking).catch(() => null)", lacking)
    assert page.inner_text("#answer") == earlier
    assert page.locator("main tbody tr").first.is_visible()
    page.go_forward()
    page.wait_for_function("() => document.getElementById('answer').textContent.includes('could not be loaded')")
    assert not page.locator("main tbody tr").first.is_visible()


@pytest.mark.parametrize("lacking", ["data/series-*.js", *for_proof("static/uplot/*.js")])
def test_a_chart_whose_files_are_missing_says_so_alone(made, desktop, lacking):
    page = desktop.page
    page.route(f"**/{lacking}", lambda route: route.abort())
    page.goto((made.root / trial_page(made, "fakemlir")).as_uri())
    page.wait_for_function("() => document.getElementById('reading')?.textContent.startsWith('Nothing can be shown: ')")
    assert not page.locator("#chart").is_visible()


def test_a_browser_whose_language_is_no_language_draws_a_chart(made, own_page):
    own_page.page.add_init_script("Object.defineProperty(Navigator.prototype, 'language', { get: () => 'C' })")
    page = own_page.open(made.root, trial_page(made, "fakemlir"))
    assert page.locator("#chart canvas").is_visible()
    assert "µs" in page.inner_text("#reading")
    assert own_page.complaints == []


@pytest.mark.proof
def test_what_has_no_figure_stands_last_up_and_down(made, desktop):
    for order in ("7", "-7"):
        page = desktop.open(made.root, f"trials.html#sort={order}")
        page.wait_for_selector("th[aria-sort]")
        shown = [row[7] for row in rows(page, "#trials")]
        without = [figure == "—" for figure in shown]
        assert any(without), "one trial failed"
        assert without == sorted(without), order


def test_places_and_chunks_of_the_chooser_sort_as_numbers(made, desktop):
    for column in (1, 4):
        page = desktop.open(made.root, f"chooser.html#sort={column}")
        page.wait_for_selector("th[aria-sort]")
        page.wait_for_function("() => document.querySelectorAll('#choices tbody tr').length > 0")
        numbers = [int(re.findall(r"\d+", row[column])[0]) for row in rows(page, "#choices")]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("typed", [*for_proof("10 ms", "1,000", "-1"), "abc"])
def test_a_budget_that_is_no_number_is_told(made, desktop, typed):
    page = desktop.open(made.root, "chooser.html")
    before = rows(page, "#choices")
    page.locator("[name=period]").fill(typed)
    page.wait_for_function("() => document.getElementById('answer')?.textContent.includes('Frame period (ms)')")
    assert f"'{typed}' is no number above 0" in page.locator("#answer").inner_text()
    assert page.locator("[name=period]").get_attribute("aria-invalid") == "true"
    assert rows(page, "#choices") == before
    page.locator("[name=period]").fill("0,5")
    page.wait_for_function("() => !document.getElementById('answer')?.textContent.includes('Frame period (ms)')")


def test_the_compare_page_says_why_it_compares_nothing(made, desktop):
    for choice, told in (
        (f"by=nights&{address_of_nights(made, 3, 3)}", "A and B are the same. Choose two."),
        ("by=machines", "There is only one to choose: "),
        ("by=strategies", "There is only one to choose: looped-stitched."),
        ("by=backends&a=fakemlir:linalg&b=fakemlir:linalg", "A and B are the same. Choose two."),
    ):
        page = desktop.open(made.root, f"compare.html#{choice}")
        page.wait_for_function("() => document.getElementById('answer')?.textContent")
        assert page.locator("#answer").inner_text().startswith(told), choice
        assert not page.locator("#compared").is_visible()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("trials.html", "#answer"),
        ("alerts.html", "p.none"),
        *for_proof(("compare.html", "#more"), ("conformance.html", "p.none")),
    ],
)
def test_a_text_that_nothing_has_is_told(made, desktop, name, told):
    page = desktop.open(made.root, f"{name}#q=nosuchthing")
    page.wait_for_function("(told) => document.querySelector(told)?.textContent", arg=told)
    assert page.locator(told).is_visible()
    assert re.match(r"0 of|No|None", page.locator(told).inner_text())
    assert page.locator("main tbody tr:visible, ul[data-filter] li:visible").count() == 0


@pytest.mark.proof
def test_a_link_to_a_place_of_the_page_keeps_the_choices(made, desktop):
    page = desktop.open(made.root, "conformance.html#q=fakelib")
    shown = rows(page, "main table[data-sortable]")
    page.evaluate("location.hash = '#checks'")
    page.wait_for_function("() => location.hash === '#checks'")
    assert page.locator("[name=q]").input_value() == "fakelib"
    assert rows(page, "main table[data-sortable]") == shown
    page.go_back()
    page.wait_for_function("() => location.hash === '#q=fakelib'")
    assert page.locator("[name=q]").input_value() == "fakelib"


@pytest.mark.proof
def test_two_trials_of_one_run_are_named_by_what_they_share(desktop):
    page = desktop.open(COMMITTED, "compare.html#by=strategies")
    page.wait_for_selector("#compared tbody tr")
    for row in rows(page, "#compared"):
        workload = r"lstm_streaming: lstm, input 64, hidden \d+, 128 steps, batch 1, "
        assert re.match(r"[\w:-]+, \d+ steps? a call; " + workload, row[1])


def test_figures_of_scripts_are_written_as_those_of_reports(made, desktop):
    page = desktop.open(made.root, "trials.html")
    seconds = [None, 0.0, 3.2e-10, 9.99e-7, 9.9996e-7, 1.234e-6, 9.996e-4, 0.0123, 0.99951, 1.0, 180.0, 4321.0]
    seconds += [0.03125, 1.125, 1.375, 9.725e-6, 12.25, 0.01295, 100.5, 101.5, 1.005e-4, 1e-9 * 7515]
    sizes = [None, 0, 1000, 1023, 1024, 1500, 1 << 20, 3_250_585, 5 << 30, 7 << 40, 1152, 1408, 12_544, 288 << 12]
    written = page.evaluate("([s, n]) => [s.map(rnnbench.seconds), n.map(rnnbench.nbytes)]", [seconds, sizes])
    assert written == [[units.seconds(value) for value in seconds], [units.nbytes(value) for value in sizes]]


def test_data_files_hold_figures_as_reports_write_them(made, desktop):
    """Also where five digits end halfway between two figures of three: to round those again would give another one."""
    values = [1e-9 * count for count in range(1005, 9995, 10)] + [9.72496e-6, 9.72504e-6, 0.01295022, 5.94506e-5]
    stored = [scaled([value]) for value in values]
    page = desktop.open(made.root, "trials.html")
    written = page.evaluate(
        "(stored) => stored.map(([power, [[whole]]]) => rnnbench.seconds(rnnbench.decimal(whole, power)))", stored
    )
    assert written == [units.seconds(value) for value in values]


def test_the_interval_of_a_listed_trial_is_that_of_its_record(made, desktop):
    page = desktop.open(made.root, "trials.html")
    shown = {row[0]: row[8] for row in rows(page, "#trials")}
    record = next(one for one in made.runs[-1].records if one.backend == "fakebase")
    low, high = map(units.seconds, record.latency("bound").interval)
    assert shown[record.trial] == f"{low} to {high}"


def changed_night(made: Any, desktop: Watched, change: Any) -> Any:
    """The comparison of two nights, of which B has changed rows."""
    name = night_of(made, 13)["file"]
    night = stored(made.root / "data" / f"{name}.js")
    for row in night:
        change(row)
    body = f'rnnbench.put("{name}",{json.dumps(night)});'
    desktop.page.route(f"**/data/{name}.js", lambda route: route.fulfill(body=body))
    page = desktop.open(made.root, f"compare.html#{address_of_nights(made, 5, 13)}")
    page.wait_for_function("() => document.querySelectorAll('#compared tbody tr').length > 3")
    return page


def test_ratios_of_build_size_and_memory_are_b_over_a(made, desktop):
    def double(row: list[Any]) -> None:
        row[6] = [figure and 2 * figure for figure in row[6]]

    shown = rows(changed_night(made, desktop, double), "#compared")
    assert {cell for row in shown for cell in row[6:]} == {"2.00×"}


@pytest.mark.first(1)
@pytest.mark.parametrize(("place", "value", "told"), [(1, 1, "B is "), (2, 0, "not believed")])
def test_a_side_b_that_failed_or_is_not_believed_has_no_verdict(made, desktop, place, value, told):
    def spoil(row: list[Any]) -> None:
        row[place] = value

    shown = {row[0] for row in rows(changed_night(made, desktop, spoil), "#compared")}
    assert len(shown) == 1
    assert shown.pop().startswith(f"no verdict: {told}")


@pytest.mark.proof
def test_of_one_verdict_the_largest_change_comes_first(made, desktop):
    page = desktop.open(made.root, f"compare.html#{address_of_nights(made, 5, 13)}")
    page.wait_for_function("() => document.querySelectorAll('#compared tbody tr').length > 3")
    found = [change for change in compare_runs(made.runs[5], made.runs[13]).latencies if change.path == "bound"]
    slower = sorted((change.new / change.base for change in found if change.verdict == "SLOWER"), reverse=True)
    assert len(set(slower)) > 1
    assert [row[4] for row in rows(page, "#compared") if row[0] == "SLOWER"] == [f"{ratio:.3f}×" for ratio in slower]


def choice(name: str, origin: str, call: float, **changes: Any) -> dict[str, Any]:
    """A program of the chooser whose public call takes `call` seconds, and some calls twice as long."""
    path = [call, 0.9 * call, 1.1 * call, 2 * call]
    common = {"page": "none", "strategy": "looped-stitched", "state": "stitched", "chunk": 4, "streams": True}
    figures = {"place": "1", "bound": path, "public": path, "build": 1.5, "memory": 3 << 20, "command": "none"}
    return {**common, **figures, "program": name, "origin": origin, **changes}


def test_the_chooser_knows_delays_limits_and_kernels(made, desktop):
    programs = [
        choice("library", "library", 1e-3),
        choice("authored", "authored", 2e-3, memory=(3 << 20) + 1),
        choice("unsampled", "imported", 3e-3, public=[3e-3, 2.7e-3, 3.3e-3, None]),
        choice("by hand", "kernel", 5e-4),
    ]
    desktop.page.route(
        "**/data/chooser-*.js",
        lambda route: route.fulfill(
            body=f"rnnbench.put(decodeURIComponent(document.currentScript.src.split('/').pop().slice(0, -3)),"
            f"{json.dumps(programs)});"
        ),
    )
    page = desktop.open(made.root, "chooser.html#period=10&kernel=yes")
    shown = {row[2]: (row[7], row[8]) for row in rows(page, "#choices")}
    assert shown == {
        "library": ("2.00 ms", "32.0 ms"),
        "authored": ("4.00 ms", "34.0 ms"),
        "unsampled": ("3.30 ms *", "33.3 ms"),
        "by hand": ("1.00 ms", "31.0 ms"),
    }
    assert "kernels left out: library looped-stitched with 4 steps a call, 250 µs" in page.inner_text("#answer")
    for name, limit, fitting in (("memory", "3", 3), ("delay", "32", 2)):
        page.locator(f"[name={name}]").fill(limit)
        page.wait_for_function(
            "(said) => document.getElementById('answer')?.textContent.startsWith(said)", arg=f"{fitting} of 4"
        )


def test_the_scale_of_a_chart_says_what_it_is_of(made, own_page):
    own_page.page.add_init_script(
        "window.texts = []; const fill = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = "
        "function (text, ...rest) { window.texts.push(text); return fill.call(this, text, ...rest); };"
    )
    page = own_page.open(made.root, trial_page(made, "fakemlir"))
    for name, label in (
        ("bound", "bound latency (time a call)"),
        ("build", "build time"),
        ("run_memory", "run memory (bytes)"),
    ):
        page.locator("[name=measure]").select_option(name)
        page.wait_for_function("(label) => window.texts.includes(label)", arg=label)


@pytest.mark.proof
def test_noise_of_a_chart_is_no_trend_and_an_axis_that_does_not_begin_at_zero_says_so(made, own_page):
    """The scatter of the nights is 0.5 %: it takes no tenth of an axis that spans a fifth of the latency."""
    own_page.page.add_init_script(
        "window.numbers = []; const fill = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = "
        "function (text, ...rest) { window.numbers.push(text); return fill.call(this, text, ...rest); };"
    )
    page = own_page.open(made.root, trial_page(made, "fakebase"))
    page.wait_for_function("() => window.numbers.some((text) => text.endsWith(' µs'))")
    ticks = [float(text.split()[0]) for text in page.evaluate("window.numbers") if text.endswith(" µs")]
    assert max(ticks) > 1.05 * min(ticks)
    said = re.search(r"begins at ([\d.]+) µs, and not at 0", page.locator("#scale").inner_text())
    assert said
    assert 0 < float(said[1]) <= min(ticks)


@pytest.mark.proof
def test_thousands_sort_as_numbers(made, desktop):
    page = desktop.open(made.root, "conformance.html")
    table = "main table[data-sortable]"
    figures = ["1,200", "90", "1,000", "7"]
    page.evaluate(
        "([table, figures]) => Array.from(document.querySelector(table).tBodies[0].rows).forEach("
        "(row, at) => { row.cells[1].textContent = figures[at % 4]; })",
        [table, figures],
    )
    page.locator(f"{table} th button").nth(1).click()
    page.wait_for_selector("th[aria-sort=ascending]")
    shown = [int(row[1].replace(",", "")) for row in rows(page, table)]
    assert len(shown) > 2
    assert shown == sorted(shown)


@pytest.mark.proof
def test_a_choice_shows_what_has_its_value_and_not_what_begins_with_it(made, desktop):
    page = desktop.open(made.root, "alerts.html")
    parts = "ul[data-filter=alerts] > li[data-backend=fakemlir]"
    count = page.locator(parts).count()
    assert count > 0
    page.evaluate("(parts) => { document.querySelector(parts).dataset.backend += '-onnx'; }", parts)
    page.locator("[name=backend]").select_option("fakemlir")
    page.wait_for_function("() => location.hash.includes('fakemlir')")
    assert page.locator("ul[data-filter=alerts] > li:visible").count() == count - 1


NAMES = (
    *("__proto__", "constructor", "case", "CASE", "fast 10 ms", "50 % of it", "two  spaces", " at the ends ", "a\tb"),
    *("x\x00y", "\u202eright", "\u05e9\u05dc", "&lt;b&gt;", "</script><b>", "[a](b) *c* `d`", "#a=b&c=d", "W" * 10_000),
)
"""Of backends and cases that no page was written for."""


@pytest.fixture(scope="module")
def named(tmp_path_factory) -> Path:
    """A site of two runs, with a backend and a case of each name."""
    folder = tmp_path_factory.mktemp("named")
    records = [
        (record := fake.record(name, "ops")).model_copy(
            update={"case": name, "trial": f"{name}/{record.trial}", "version": {name: name}}
        )
        for name in NAMES
    ]
    runs = [
        read_run(fake.write_run(folder / f"run{day}", records, started=f"2026-01-{day}T02:00:00Z")) for day in (10, 11)
    ]
    write_site(runs, None, folder / "site")
    return folder / "site"


def options(page: Any, name: str) -> list[str]:
    return page.locator(f"[name={name}]").evaluate("(select) => Array.from(select.options, (one) => one.value)")


@SHOWN
def test_pages_of_any_names_fit_a_phone_and_keep_the_console_empty(named, phone, shown):
    for name in shown(named):
        open_on_phones(phone, named, name)
    assert phone.complaints == []


@pytest.mark.proof
@pytest.mark.parametrize("name", ["backend", *for_proof("case")])
def test_any_name_can_be_chosen(named, desktop, name):
    page = desktop.open(named, "trials.html")
    values = [value for value in options(page, name) if value]
    assert len(values) == len(NAMES)
    for at, value in enumerate(values, start=1):
        page.locator(f"[name={name}]").select_option(index=at)
        page.wait_for_function(f"() => document.getElementById('answer').textContent.startsWith('1 of {len(NAMES)} ')")
        assert page.locator(".misses").count() == 0, value
    assert desktop.complaints == []


@pytest.mark.proof
def test_the_link_of_a_page_of_any_name_leads_to_its_trials(named, desktop):
    files = sorted((named / "trials").iterdir())
    page = desktop.open(named, f"trials/{files[0].name}")
    page.locator(".crumbs a").last.click()
    shows_one = f"() => document.getElementById('answer')?.textContent.startsWith('1 of {len(NAMES)} ')"
    page.wait_for_function(shows_one)
    for file in files[1:]:
        *_, link = re.findall(r'href="\.\./trials\.html(#[^"]*)"', file.read_text("utf-8"))
        page.evaluate("(link) => { document.getElementById('answer').textContent = ''; location.hash = link; }", link)
        page.wait_for_function(shows_one)


@pytest.mark.proof
def test_any_name_has_versions_to_compare(named, desktop):
    page = desktop.open(named, "compare.html#by=versions")
    for at, value in enumerate(options(page, "backend")):
        page.locator("[name=backend]").select_option(index=at)
        page.wait_for_function("() => document.getElementById('answer').textContent.startsWith('There is only one')")
        assert page.locator("[name=backend]").input_value() == value
    assert desktop.complaints == []


@pytest.mark.parametrize(
    ("name", "address", "told"),
    [
        ("compare.html", "by=months&path=gone", "Compare two 'months', Latency 'gone'"),
        ("alerts.html", "backend=<b>", "Backend '<b>'"),
        *for_proof(
            ("index.html", "model=gone&chunk=999", "Model 'gone', Steps a call '999'"),
            ("chooser.html", "workload=gone&cell=lstm", "Workload 'gone'"),
            ("compare.html", "by=backends&night=gone&a=gone", "Run 'gone', A 'gone'"),
            ("trials.html", "backend=gone&q=x", "Backend 'gone'"),
            ("trial", "measure=gone&last=gone", "Measure 'gone', Range 'gone'"),
        ),
    ],
)
def test_what_a_link_asks_for_and_the_site_does_not_have_is_told(made, desktop, name, address, told):
    page = desktop.open(made.root, f"{trial_page(made, 'fakemlir') if name == 'trial' else name}#{address}")
    page.wait_for_selector(".misses:visible")
    assert page.locator(".misses").inner_text() == (
        f"The address asks for what this page does not have: {told}. What the form says is shown instead."
    )
    page.evaluate("location.hash = ''")
    page.wait_for_function("() => !document.querySelector('.misses')")
    assert desktop.complaints == []


def test_choices_stay_when_a_page_is_loaded_again_and_when_a_visitor_comes_back(made, desktop):
    """A browser that fills forms in again does not make what was chosen the page's own choice."""
    page = desktop.open(made.root, "trials.html")
    shown = page.inner_text("#answer")
    page.locator("[name=backend]").select_option("fakelib")
    page.locator("[name=q]").fill("looped")
    page.wait_for_function("(shown) => document.getElementById('answer').textContent !== shown", arg=shown)
    chosen = page.inner_text("#answer")
    page.reload()
    page.wait_for_function("(chosen) => document.getElementById('answer').textContent === chosen", arg=chosen)
    page.locator("#trials a").first.click()
    page.wait_for_selector("h1.trial")
    page.go_back()
    page.wait_for_function("(chosen) => document.getElementById('answer')?.textContent === chosen", arg=chosen)
    assert [page.locator(f"[name={name}]").input_value() for name in ("backend", "q")] == ["fakelib", "looped"]
    page.go_back()
    page.go_back()
    page.wait_for_function("(shown) => document.getElementById('answer').textContent === shown", arg=shown)
    assert [page.locator(f"[name={name}]").input_value() for name in ("backend", "q")] == ["", ""]


@pytest.mark.parametrize("zone", [*for_proof("Pacific/Honolulu"), "Pacific/Kiritimati"])
def test_days_are_those_of_utc_wherever_the_visitor_is(made, chromium, zone):
    context = chromium.new_context(viewport=DESKTOP, timezone_id=zone)
    page = context.new_page()
    page.add_init_script(
        "window.texts = []; const fill = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = "
        "function (text, ...rest) { window.texts.push([text, rest[0]]); return fill.call(this, text, ...rest); };"
    )
    page.goto((made.root / trial_page(made, "fakemlir")).as_uri())
    page.wait_for_function("() => document.getElementById('reading').textContent.startsWith('2026-01-14: ')")
    page.wait_for_function("() => window.texts.some(([text]) => text.startsWith('2026-'))")
    first = min((at, text) for text, at in page.evaluate("window.texts") if text.startswith("2026-"))[1]
    assert first in ("2026-01-01", "2026-01-02")
    page.goto((made.root / "compare.html").as_uri())
    page.wait_for_function("() => document.querySelectorAll('#compared tbody tr').length > 3")
    nights = page.locator("[name=b]").evaluate("(select) => Array.from(select.options, (one) => one.text.slice(0, 16))")
    assert nights == [f"2026-01-{day:02d} 02:00" for day in range(NIGHTS, 0, -1)]
    context.close()


@SHOWN
def test_a_run_of_which_every_trial_failed_has_pages_that_say_so(tmp_path, desktop, shown):
    failed = [fake.record(chunk=2**k, outcome=outcome, bound=None) for k, outcome in enumerate(fake.OUTCOMES[1:])]
    root = write_site([read_run(fake.write_run(tmp_path / "run", failed))], None, tmp_path / "site").parent
    for name in shown(root):
        desktop.open(root, name)
    for name, told in (
        ("compare.html", "Nothing was measured in this night."),
        ("chooser.html", "No program was ranked"),
        ("index.html", "wrong numbers"),
    ):
        assert told in desktop.open(root, name).inner_text("main"), name
    assert desktop.complaints == []


def test_the_keyboard_sees_how_a_table_sorts_on_a_small_screen(made, phone):
    """The names of columns stand beside each cell there. A desktop at 400 % is as small."""
    page = phone.open(made.root, "trials.html")
    page.set_viewport_size(SMALLEST_PHONE)
    buttons = page.locator("#trials th button")
    for at in (0, buttons.count() - 1):
        assert buttons.nth(at).bounding_box()["x"] < 0
        buttons.nth(at).focus()
        box = buttons.nth(at).bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= SMALLEST_PHONE["width"]
        page.evaluate("document.activeElement.blur()")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_figure_stays_beside_its_unit_on_a_small_screen(phone):
    page = phone.open(COMMITTED, "compare.html#by=backends")
    page.set_viewport_size(SMALLEST_PHONE)
    cell = page.locator("#compared td.number:has(> small)").first
    lines = cell.evaluate(
        "(cell) => { const range = document.createRange(); range.selectNodeContents(cell.firstChild);"
        " return new Set(Array.from(range.getClientRects(), (one) => one.top)).size; }"
    )
    assert lines == 1


@pytest.mark.proof
@pytest.mark.parametrize("days", [*for_proof(1, 60), 500])
def test_a_chart_of_any_length_has_days_on_its_axis_on_a_phone(made, phone, days):
    """Of two weeks, of two years and of twenty."""
    phone.page.add_init_script(
        "window.texts = []; const fill = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = "
        "function (text, ...rest) { window.texts.push(text); return fill.call(this, text, ...rest); };"
    )
    nights = [f"{(date(2006, 1, 1) + timedelta(number * days)).isoformat()}T02:00:00" for number in range(NIGHTS)]
    (file,) = (made.root / "data").glob("dates-*.js")
    body = f'rnnbench.put("{file.stem}",{json.dumps(nights)});'
    phone.page.route(f"**/data/{file.name}", lambda route: route.fulfill(body=body))
    page = phone.open(made.root, trial_page(made, "fakemlir"))
    page.wait_for_function("() => window.texts.some((text) => text.endsWith(' µs'))")
    assert [text for text in page.evaluate("window.texts") if re.fullmatch(r"\d{4}-\d\d-\d\d", text)]

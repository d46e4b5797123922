"""The files of a site: the same for the same input, complete, small, harmless, and the committed one is up to date."""

from __future__ import annotations

import errno
import html.parser
import json
import re
import shutil
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import fake_records as fake
import made_history
import pytest
from picture import LABEL, PICTURE, page_digest
from waiting import PATIENCE_S

from rnnbench.history import Alert, Alerts, Detection, History
from rnnbench.locks import locked_folder
from rnnbench.results import CheckResult, Run, StoreError, read_run
from rnnbench.site import write_site
from rnnbench.site.content import read_content

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "reports" / "site"
COMMITTED_RUNS = ("reference",)
COMMITTED_HISTORY = ROOT / "results" / "releases"
REFRESH = f"make site (rnnbench site {' '.join(COMMITTED_RUNS)} --history results/releases -o reports/site)"
LARGEST = 300_000
"""Bytes of one request."""
COMMITTED_BYTES = 6_200_000


class Page(html.parser.HTMLParser):
    """The addresses and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        if tag == "a":
            self.links.append(found.get("href") or "")
        elif tag in ("script", "link", "img"):
            self.loaded.append(found.get("src") or found.get("href") or "")


def pages(root: Path) -> dict[str, Page]:
    return {
        str(file.relative_to(root)): Page(file.read_text(encoding="utf-8")) for file in sorted(root.rglob("*.html"))
    }


def contents(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with every outcome, target and strategy, of one size each."""
    records = [one for one in fake.whole_run() if (one.params.model["hidden"], one.params.chunk) == (128, 1)]
    records += [one for one in fake.whole_run() if one.outcome not in ("ok", "unsupported")]
    return read_run(fake.write_run(tmp_path_factory.mktemp("run") / "fake_run", {r.trial: r for r in records}.values()))


@pytest.fixture(scope="module")
def small_site(small: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its site, which nobody changes."""
    root = tmp_path_factory.mktemp("small") / "site"
    write_site([small], None, root)
    return root


def broken_links(root: Path) -> list[str]:
    known = pages(root)
    broken = []
    for name, page in known.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme:
                continue
            target = (root / name).parent / unquote(address.path) if address.path else root / name
            if not target.is_file():
                broken.append(f"{name}: {link}")
            elif address.fragment and "=" not in address.fragment and target.suffix == ".html":
                anchors = known[str(target.resolve().relative_to(root.resolve()))].anchors
                if address.fragment not in anchors:
                    broken.append(f"{name}: {link}")
    return broken


def test_no_page_has_a_character_that_cannot_be_seen(made):
    """A name with a bidi override turned the rest of a line around, where a workload was printed that has it."""
    unseen = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
    for file in made.root.rglob("*.html"):
        found = unseen.search(file.read_text("utf-8"))
        assert found is None, (file.name, found)


def test_equal_input_gives_equal_bytes(small, small_site, tmp_path):
    write_site([small], None, tmp_path)
    assert contents(tmp_path) == contents(small_site)


def test_every_link_leads_to_a_page_and_an_anchor_that_are_there(made, small_site):
    assert broken_links(made.root) == []
    assert broken_links(small_site) == []


def test_trials_that_were_not_attempted_are_last_in_the_list(small_site):
    (file,) = (small_site / "data").glob("list-*.js")
    listed = json.loads(file.read_text().partition(",")[2].removesuffix(");\n"))
    attempted = [row["outcome"] not in ("unsupported", "unavailable") for row in listed]
    assert {*attempted} == {True, False}
    assert attempted == sorted(attempted, reverse=True)


def test_nothing_is_loaded_from_elsewhere(made):
    loaded = {address for page in pages(made.root).values() for address in page.loaded}
    assert loaded - {"data:,"}
    assert not [address for address in loaded - {"data:,"} if urlsplit(address).scheme or address.startswith("//")]
    styles = "".join(file.read_text() for file in made.root.rglob("*.css"))
    assert "url(" not in styles
    assert "@import" not in styles


def test_text_of_records_is_text(made):
    """No markup of a record stands in a page, and no data file can end its script."""
    for name, content in contents(made.root).items():
        if name.endswith(".html"):
            assert b"<img" not in content, name
            assert b"window.hit=2</script>" not in content, name
            assert b'href="javascript:' not in content, name
        if name.startswith("data/"):
            assert b"<" not in content, name
            assert content.isascii(), name


def test_made_up_figures_are_marked_as_such_on_every_page(made):
    for file in made.root.rglob("*.html"):
        assert "No machine measured these figures" in file.read_text(encoding="utf-8"), file


def test_no_file_is_larger_than_a_request_may_be(made):
    for root in (made.root, COMMITTED):
        assert max(file.stat().st_size for file in root.rglob("*") if file.is_file()) < LARGEST


def test_a_folder_with_other_files_is_left_alone(small, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(StoreError, match="has files that are no site"):
        write_site([small], None, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_site_that_was_killed_at_its_first_file_is_made_again(small, tmp_path):
    (tmp_path / ".rnnbench-site.txt.123-456.part").touch()
    write_site([small], None, tmp_path)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("full_at", ["mkdir", "data"])
def test_a_full_disk_is_told_with_the_option_that_names_another(small, tmp_path, monkeypatch, full_at):
    def full(path, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(*((Path, "mkdir", full) if full_at == "mkdir" else ("rnnbench.site.page.write_bytes", full)))
    with pytest.raises(StoreError, match=r"cannot write to .*/site: No space left on device; .* with -o$"):
        write_site([small], None, tmp_path / "site")


def test_pages_of_trials_that_are_gone_are_removed(small, small_site, tmp_path):
    shutil.copytree(small_site, tmp_path, dirs_exist_ok=True)
    fewer = replace(small, records=small.records[:5])
    write_site([fewer], None, tmp_path)
    assert len(list((tmp_path / "trials").iterdir())) == 5
    assert len(list((tmp_path / "records").iterdir())) == 5


def test_without_a_run_there_is_a_sentence(tmp_path):
    with pytest.raises(StoreError, match="needs at least one run"):
        write_site([], None, tmp_path)


def test_two_machines_have_pages_of_their_own(small, tmp_path):
    other = replace(small, info=small.info.model_copy(update={"machine": {"cpu": "Other Fake CPU"}, "run": "other"}))
    write_site([small, other], None, tmp_path)
    assert len(list((tmp_path / "trials").iterdir())) == 2 * len(small.records)
    assert "Other Fake CPU" in (tmp_path / "machines.html").read_text()
    for file in (tmp_path / "trials").iterdir():
        top, *_ = file.read_text(encoding="utf-8").partition('<dl class="tiles">')
        assert re.search(r"on <a href=\"../machines.html#m-\w+\">(Other )?Fake CPU", top)
    heads = re.findall(r'<section class="map".*?<h3>(.*?)</h3>', (tmp_path / "index.html").read_text(), re.DOTALL)
    assert len(set(heads)) == len(heads), "a heat map names its machine"
    for name in ("index.html", "conformance.html"):
        row = re.compile(r"</th>\s*<td><a href=\"machines.html#m-\w+\">Other Fake CPU</a></td>")
        assert row.search((tmp_path / name).read_text()), "a program has a row for each machine"


def test_a_program_that_was_not_fully_checked_does_not_simply_conform(small, tmp_path):
    def verdicts(run: Run) -> set[str]:
        write_site([run], None, tmp_path)
        return set(re.findall(r"<td class=\"\w+\">(✓ conforms[^<]*)</td>", (tmp_path / "conformance.html").read_text()))

    late = {"rings": CheckResult(verdict="too-short", detail="not begun")}
    records = [record.model_copy(update={"conformance": {**record.conformance, **late}}) for record in small.records]
    assert "✓ conforms" in verdicts(small)
    told = verdicts(replace(small, records=tuple(records)))
    assert told
    assert all("not fully checked" in verdict for verdict in told)


@pytest.mark.parametrize("differing", [{"memory": 1}, {"python": "3.12.1"}], ids=["machine", "interpreter"])
def test_two_machines_with_one_processor_are_told_apart(small, tmp_path, differing):
    """And one machine with two interpreters: their latencies are in two rankings."""
    described = [small.info.machine | {"python": "3.11.7"}, small.info.machine | {"python": "3.11.7"} | differing]
    runs = [
        replace(small, info=small.info.model_copy(update={"machine": machine, "run": f"run{number}"}))
        for number, machine in enumerate(described)
    ]
    write_site(runs, None, tmp_path)
    names = re.findall(
        r"</th>\s*<td><a href=\"machines.html#m-\w+\">(.*?)</a></td>", (tmp_path / "index.html").read_text()
    )
    assert len(set(names)) == 2
    for name in ("index.html", "chooser.html"):
        options = re.findall(r"<option value=\"([^\"]*?-h\d+-[^\"]*)\"[^>]*>([^<]*)<", (tmp_path / name).read_text())
        values, texts = zip(*options, strict=True)
        assert len(set(values)) == len(values), name
        assert len(set(texts)) == len(texts), name


def test_a_machine_is_told_by_its_processor_where_that_says_which_it_is(tmp_path):
    cpus = ("Fake CPU", "Fake CPU", "Other Fake CPU")
    runs = [
        Run(tmp_path, fake.info(run=str(number), machine={"cpu": cpu, "cores": number}), (fake.record(),))
        for number, cpu in enumerate(cpus)
    ]
    content = read_content(runs, None)
    names = {machine.name: content.short_name(machine) for machine in content.machines}
    assert len(names) == 3
    assert all(short == ("Other Fake CPU" if "Other" in name else name) for name, short in names.items())


def test_a_shared_measurement_leads_to_the_page_of_its_own_interpreter(tmp_path):
    own = fake.record()
    shared = fake.record(time="unrolled", bound=None, same_as=own.trial)
    runs = [
        Run(tmp_path, fake.info(run=python, machine={"cpu": "Fake CPU", "python": python}), (own, shared))
        for python in ("3.11.7", "3.12.1")
    ]
    content = read_content(runs, None)
    write_site(runs, None, tmp_path / "site")
    for machine in content.machines:
        text = (tmp_path / "site" / "trials" / f"{machine.shown[shared.trial].page}.html").read_text(encoding="utf-8")
        assert f'<a href="{machine.shown[own.trial].page}.html">{own.trial}</a>' in text


def test_what_moved_is_said_in_sentences(made):
    overview = (made.root / "alerts.html").read_text(encoding="utf-8")
    assert re.search(r"fakemlir</a>:\s+bound latency \+(9|10)\.\d\s% \(95\s% interval", overview)
    assert "1.2.3 → fakemlir-package 2.0.0" in overview.replace("fakemlir-package 1.2.3", "1.2.3")
    assert "ends as build-failed (it was ok)" in overview


def test_alerts_are_on_the_overview_while_they_are_open(small, tmp_path):
    found = Detection(
        machine="fake", backend="fakelib", what="outcome", evidence="event", night="2025-01-20T02:00:00", run="n"
    )
    alert = Alert(id="old", state="new", found=found.model_copy(update={"before": "ok", "after": "crashed"}))
    page = write_site([small], None, tmp_path / "site", Alerts.read(tmp_path / "alerts.yaml").put(alert))
    overview = page.read_text(encoding="utf-8")
    assert re.search(
        r"<h2[^>]*>Open alerts<.*2025-01-20.*ends as crashed \(it was ok\).*State: new.*<h2[^>]*>What moved",
        overview,
        re.DOTALL,
    )
    shown = overview.partition("Open alerts</h2>")[2]
    assert re.search(r'<a href="trials.html#backend=\w+">', shown), "it leads to what moved"
    anchor = re.search(r'<a href="alerts.html#([\w-]+)">What to do', shown)[1]
    assert f'<details id="{anchor}">' in (tmp_path / "site" / "alerts.html").read_text(encoding="utf-8")


def test_the_history_of_a_trial_has_its_nights_and_its_change(made):
    step = next(r for r in made.runs[-1].records if r.backend == "fakemlir")
    page = next(f for f in (made.root / "trials").iterdir() if step.trial in f.read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    assert f"{len(made.runs)} nights." in text
    name = re.search(r'data-series="([\w-]+)"', text)
    series = (made.root / "data" / f"{name[1]}.js").read_text()
    assert '"at":7' in series
    assert '"cause":"program"' in series


def test_the_committed_site_is_what_the_command_makes(tmp_path):
    """But for the pages of documents, which change with every edit of `docs/`: those need only be there."""
    runs = [read_run(ROOT / "results" / name) for name in COMMITTED_RUNS]
    write_site(runs, History(COMMITTED_HISTORY), tmp_path)
    made, kept = contents(tmp_path), contents(COMMITTED)
    assert made.keys() == kept.keys(), f"refresh it: {REFRESH}"
    differing = [name for name in made if made[name] != kept[name] and not name.startswith("method-")]
    assert not differing, f"refresh it: {REFRESH}"
    assert sum(len(content) for name, content in kept.items() if not name.startswith("method-")) < COMMITTED_BYTES


def test_the_picture_in_the_readme_is_of_the_committed_site():
    """Figures of an earlier run would stand beside the findings of this one."""
    image = pytest.importorskip("PIL.Image", reason="reads the picture; pip install 'rnnbench[report]'")
    with image.open(PICTURE) as picture:
        assert picture.info.get(LABEL) == page_digest(), f"refresh it: {REFRESH}"


def test_a_folder_with_what_the_site_is_made_of_is_refused(small, small_site, tmp_path):
    """Files that an earlier site left are removed, and a history has such names too."""
    root = tmp_path / "site"
    shutil.copytree(small_site, root)
    shutil.copytree(small.path, root / "run")
    before = contents(root)
    with pytest.raises(StoreError, match=r"has .* in it, which the site is made of; give a folder of its own with -o"):
        write_site([read_run(root / "run")], None, root)
    assert contents(root) == before


def test_what_the_site_does_not_make_stays_beside_it(small, small_site, tmp_path):
    shutil.copytree(small_site, tmp_path, dirs_exist_ok=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "index.html").write_text("mine")
    (tmp_path / "CNAME").write_text("mine")
    for name in ("left.html", ".index.html.7-7.part"):
        (tmp_path / name).write_text("of an earlier site")
    (tmp_path / "link").symlink_to(".git")
    write_site([small], None, tmp_path)
    mine = {".git/index.html": b"mine", "CNAME": b"mine"}
    assert contents(tmp_path) == {**contents(small_site), **mine}
    assert (tmp_path / "link").is_symlink()


def test_a_data_file_has_one_content_in_every_state_of_a_site(tmp_path):
    """A browser may keep a page or a data file of an earlier state. An older night has taken the place of another."""
    pytest.importorskip("duckdb")
    history, states = History(tmp_path / "history"), []
    for day in (12, 13, 10):
        made = [made_history.slower(record, day / 10) for record in made_history.trials()]
        run = fake.write_run(tmp_path / f"night{day}", made, started=f"2026-01-{day}T02:00:00+00:00")
        history.add(run)
        history = History(history.root)
        write_site([read_run(run)], history, tmp_path / "site")
        states.append({name: text for name, text in contents(tmp_path / "site").items() if name.startswith("data/")})
    assert all(len(state) > 3 for state in states)
    for before, after in pairwise(states):
        assert [name for name in before.keys() & after.keys() if before[name] != after[name]] == []


def test_a_second_command_that_makes_a_site_waits_for_the_first(small, small_site, tmp_path, capsys):
    """It would take a file that the first one is writing for a part that an earlier one has left."""
    shutil.copytree(small_site, tmp_path, dirs_exist_ok=True)
    part = tmp_path / ".index.html.7-7.part"
    part.write_text("of the first")
    second = threading.Thread(target=write_site, args=([small], None, tmp_path))
    with locked_folder(tmp_path):
        second.start()
        said = ""
        deadline = time.monotonic() + PATIENCE_S
        while "waiting for the lock" not in said and time.monotonic() < deadline:
            time.sleep(0.05)
            said += capsys.readouterr().err
        assert f"waiting for the lock {tmp_path}, held by another process" in said
        assert part.exists()
    second.join(PATIENCE_S)
    assert contents(tmp_path) == contents(small_site)

"""`rnnbench compare`: its exit status says whether something became worse, and its files say what."""

from __future__ import annotations

import json

import pytest

from rnnbench.content_digest import without_digest


@pytest.fixture
def base(finished):
    (run,) = (finished[0] / "results").iterdir()
    return run


@pytest.fixture
def crashed(folder, base):
    """The same run, in which every trial crashed."""
    return changed(folder / "crashed", base, records=('"outcome":"ok"', '"outcome":"crashed"'))


def changed(new, base, *, info=("", ""), records=("", "")):
    """A copy of a run with a text of each file replaced, and without digests."""
    new.mkdir()
    of_run = json.loads(without_digest((base / "run.json").read_bytes())[0])
    lines = [without_digest(line)[0].decode() for line in (base / "records.jsonl").read_bytes().splitlines()]
    (new / "run.json").write_text(json.dumps(of_run, indent=2).replace(*info))
    (new / "records.jsonl").write_text("".join(f"{line}\n" for line in lines).replace(*records))
    return new


def test_one_run_twice_is_refused_as_a_copy_is(rnnbench, folder, base):
    for other in (base, changed(folder / "copied", base)):
        refused = rnnbench("compare", str(base), str(other), status=2).stderr
        assert f"{base} and {other} are one run, {base.name}: nothing can differ" in refused


def test_a_lost_outcome_is_a_regression(rnnbench, folder, base, crashed):
    assert "failing" in rnnbench("compare", str(base), str(crashed), status=1).stdout
    empty = changed(folder / "empty", base)
    (empty / "records.jsonl").write_text("")
    assert "no trial in common" in rnnbench("compare", str(base), str(empty), status=2).stderr, (
        "nothing to be green for"
    )


def test_a_run_of_which_nothing_can_be_read_is_named_and_why(rnnbench, folder, base):
    damaged = changed(folder / "damaged", base, records=("{", "["))
    errors = rnnbench("compare", str(damaged), str(base), status=2).stderr
    assert f"have no trial in common; {damaged} has no record that can be read" in errors
    assert f"warning: {damaged}/records.jsonl:1: not JSON" in errors


def test_fail_on_names_what_exits_with_one(rnnbench, base, crashed):
    rnnbench("compare", str(base), str(crashed), "--fail-on", "vanished,slower")
    rnnbench("compare", str(base), str(crashed), "--fail-on", "vanished", "--fail-on", "failed", status=1)
    assert (
        "unknown name 'fast'; expected one of nonconforming"
        in rnnbench("compare", "a", "b", "--fail-on", "fast", status=2).stderr
    )


def test_the_page_and_the_json_are_written_beside_what_is_printed(rnnbench, folder, base, crashed):
    command = ("compare", str(base), str(crashed), "--fail-on=none")
    printed = rnnbench(*command, "--markdown", "report.md", "--json", "compared.json").stdout
    assert "No regression" in printed
    assert "Found too, and not counted (--fail-on): " in printed
    page, compared = (folder / "report.md").read_text(), json.loads((folder / "compared.json").read_text())
    assert page.startswith(f"# {base.name} against {base.name}")
    assert (compared["regressed"], compared["found"]["failed"]) == (False, len(compared["facts"]))
    assert rnnbench(*command, "--markdown", "-").stdout == page
    assert json.loads(rnnbench(*command, "--json=-").stdout) == compared
    assert "name a file" in rnnbench(*command, "--json=-", "--markdown=-", status=2).stderr
    (folder / "file").write_text("")
    assert "choose another file with --json" in rnnbench(*command, "--json=file/x", status=2).stderr


def test_a_tilde_before_the_name_of_a_file_is_the_home_folder(rnnbench, folder, base, crashed, monkeypatch):
    monkeypatch.setenv("HOME", str(folder / "home"))
    rnnbench("compare", str(base), str(crashed), "--fail-on=none", "--markdown=~/page.md", "--json=~/page.json")
    assert sorted(file.name for file in (folder / "home").iterdir()) == ["page.json", "page.md"]
    assert not (folder / "~").exists()


def test_runs_of_two_machines_are_refused_with_a_sentence_unless_told_to(rnnbench, folder, base):
    system = json.loads((base / "run.json").read_text())["machine"]["cpu"]
    other = changed(folder / "other", base, info=(f'"cpu": "{system}"', '"cpu": "Fake CPU 1"'))
    refused = rnnbench("compare", str(base), str(other), status=2)
    assert "come from different machines (cpu: " in refused.stderr
    assert "--across-machines" in refused.stderr
    compared = json.loads(rnnbench("compare", str(base), str(other), "--across-machines", "--json=-").stdout)
    assert compared["across_machines"]


@pytest.mark.parametrize("text", ["5", "speed=3%", "memory=lots"])
def test_what_is_no_threshold_is_refused(rnnbench, text):
    assert "--threshold" in rnnbench("compare", "a", "b", "--threshold", text, status=2).stderr


@pytest.mark.proof
def test_a_threshold_of_the_case_is_kept_in_the_run_and_the_command_counts_before_it(rnnbench, folder, base):
    text = (folder / "tiny.yaml").read_text()
    (folder / "tiny.yaml").write_text(text + "compare: {latency: 12.5%, memory: 0.3}\n")
    rnnbench("run", "tiny.yaml", "--backend", "fake:honest", "--only", only(base), "--no-baseline")
    (made,) = (folder / "results").iterdir()
    thresholds = json.loads((made / "run.json").read_text())["thresholds"]
    assert thresholds == {"tiny": {"latency": 0.125, "memory": 0.3}}
    (folder / "tiny.yaml").unlink()
    command = ("compare", str(base), str(made), "--json=-", "--fail-on=none")
    of_case = json.loads(rnnbench(*command).stdout)
    assert {one["threshold"] for one in of_case["latencies"]} == {0.125}
    given = json.loads(rnnbench(*command, "--threshold", "5%,memory=20%").stdout)
    assert {one["threshold"] for one in given["latencies"]} == {0.05}
    assert {one["threshold"] for one in given["measures"] if one["unit"] == "bytes"} == {0.2, 0.01}


def only(run):
    """The id of one trial of the fake backend."""
    ids = [json.loads(line)["trial"] for line in (run / "records.jsonl").read_text().splitlines()]
    return next(trial for trial in ids if "fake:" in trial)

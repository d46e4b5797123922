"""`import rnnbench`: the program in README, and the suite from Python."""

from __future__ import annotations

import re
from pathlib import Path

import pandas
import pytest

import rnnbench
from rnnbench.backends.registry import BackendError
from rnnbench.reports import ReportError

pytestmark = pytest.mark.usefixtures("few_checks")

ROOT = Path(__file__).parent.parent
CASE = {
    "name": "from_python",
    "model": {"cell": "lstm", "input": 3, "hidden": 4},
    "workload": {"steps": 8, "chunk": [1, 4]},
    "strategy": {"time": "looped", "state": "stitched"},
    "measure": {"budget": "20ms", "processes": 1},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> rnnbench.Run:
    return rnnbench.run(rnnbench.make_case(**CASE), ["fake"], results=tmp_path_factory.mktemp("results"))


@pytest.mark.proof
def test_the_program_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    program, *_ = re.findall(r"```python\n(import rnnbench.*?)```", (ROOT / "README.md").read_text(), re.S)
    (tmp_path / "cases").symlink_to(ROOT / "cases")
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert any(re.match(r"smoke/numpy:eager/looped-stitched/\S+ ok \d", line) for line in lines)
    assert (tmp_path / "smoke.png").read_bytes().startswith(b"\x89PNG")


def test_rows_are_dictionaries_and_a_frame_has_the_same(run: rnnbench.Run) -> None:
    rows = run.rows()
    assert [row["outcome"] for row in rows] == ["ok", "ok"]
    assert all(row["bound_median_s"] > 0 for row in rows)
    frame = run.frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["trial"]) == [row["trial"] for row in rows]


def test_an_older_run_is_read_from_its_folder(run: rnnbench.Run) -> None:
    assert [record.trial for record in rnnbench.read_run(run.path).records] == [r.trial for r in run.records]
    assert rnnbench.read_run(str(run.path)) == rnnbench.read_run(run.path)


def test_the_name_of_a_file_is_no_case_and_no_run(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"expected a Case, as load_case\(FILE\) gives.*got 'smoke.yaml'"):
        rnnbench.run("smoke.yaml")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected a Run, as read_run\(FOLDER\) gives.*got 'results/reference'"):
        rnnbench.plot("results/reference", tmp_path / "plot.png")  # type: ignore[arg-type]


def test_one_backend_needs_no_list(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="unknown backend 'fakee'; did you mean 'fake'"):
        rnnbench.check(rnnbench.make_case(**CASE), "fakee", results=tmp_path)


def test_a_check_times_nothing(tmp_path: Path) -> None:
    checked = rnnbench.check(rnnbench.make_case(**CASE), ["fake"], jobs=1, results=tmp_path)
    assert checked.info.case_files == (CASE["name"],), "a history takes it for a check, and no command resumes it"
    assert [record.outcome for record in checked.records] == ["ok", "ok"]
    assert all(row["bound_median_s"] is None for row in checked.rows())


def test_what_is_wrong_is_an_error_of_its_own(run: rnnbench.Run, tmp_path: Path) -> None:
    with pytest.raises(rnnbench.CaseError, match=r"model\.hiden"):
        rnnbench.make_case(**{**CASE, "model": {"cell": "lstm", "input": 3, "hiden": 4}})
    with pytest.raises(BackendError, match="did you mean 'fake'"):
        rnnbench.run(rnnbench.make_case(**CASE), ["fakee"], results=tmp_path)
    with pytest.raises(ReportError, match="'no-such-path'"):
        rnnbench.plot(run, tmp_path / "plot.png", path="no-such-path")
    with pytest.raises(rnnbench.CaseError, match="same name"):
        rnnbench.run([rnnbench.make_case(**CASE), rnnbench.load_case(_as_file(tmp_path))], ["fake"], results=tmp_path)


def _as_file(folder: Path) -> Path:
    path = folder / "case.yaml"
    path.write_text(
        "schema: 1\nname: from_python\nmodel: {cell: rnn, input: 3, hidden: 4}\n"
        "workload: {steps: 8}\nstrategy: {time: looped, state: none}\n"
    )
    return path

"""`rnnbench compare`: its exit status says whether something became worse."""

from __future__ import annotations


def test_a_run_compared_with_itself_is_the_same_and_a_lost_outcome_is_a_regression(rnnbench, folder, finished):
    (base,) = (finished[0] / "results").iterdir()
    rnnbench("compare", str(base), str(base))
    new = folder / "b"
    new.mkdir()
    (new / "run.json").write_bytes((base / "run.json").read_bytes())
    broken = (base / "records.jsonl").read_text().replace('"outcome":"ok"', '"outcome":"crashed"')
    (new / "records.jsonl").write_text(broken)
    rnnbench("compare", str(base), str(new), status=1)
    (new / "records.jsonl").write_text("")
    assert "no trial in common" in rnnbench("compare", str(base), str(new), status=2).stderr, "nothing to be green for"


def test_a_threshold_in_per_cent_is_refused(rnnbench):
    assert "--threshold" in rnnbench("compare", "a", "b", "--threshold", "5", status=2).stderr

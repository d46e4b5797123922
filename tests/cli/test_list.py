"""`rnnbench list`: the trials that would run."""

from __future__ import annotations


def test_list_prints_one_id_per_line_and_runs_nothing(rnnbench, folder):
    done = rnnbench("list", "tiny.yaml", "--backend", "fake:honest,numpy")
    assert len(done.stdout.splitlines()) == 8
    assert all(line.startswith("tiny/") for line in done.stdout.splitlines())
    assert not (folder / "results").exists()


def test_set_changes_the_case(rnnbench):
    done = rnnbench("list", "tiny.yaml", "--backend", "fake:honest", "--set", "model.hidden=7", "--filter", "chunk=2")
    assert len(done.stdout.splitlines()) == 2
    assert all("/h7-" in line for line in done.stdout.splitlines())


def test_a_mistake_in_a_case_names_file_line_and_column(rnnbench, folder):
    (folder / "bad.yaml").write_text((folder / "tiny.yaml").read_text().replace("hidden: 4", "hiden: 4"))
    error = rnnbench("list", "bad.yaml", "--backend", "fake", status=2).stderr
    assert "bad.yaml:3:" in error
    assert "did you mean 'hidden'?" in error


def test_two_cases_of_one_name_are_refused(rnnbench, folder):
    (folder / "other.yaml").write_text((folder / "tiny.yaml").read_text().replace("hidden: 4", "hidden: 5"))
    error = rnnbench("list", "tiny.yaml", "other.yaml", "--backend", "fake:honest", status=2).stderr
    assert "the same name, 'tiny'" in error


def test_a_folder_of_cases_is_all_of_its_cases(rnnbench, folder):
    (folder / "other.yaml").write_text((folder / "tiny.yaml").read_text().replace("name: tiny", "name: other"))
    done = rnnbench("list", ".", "--backend", "fake:honest", "--filter", "chunk=2,state=stitched")
    assert sorted(line.split("/")[0] for line in done.stdout.splitlines()) == ["other", "tiny"]


def test_a_case_that_is_named_twice_is_run_once(rnnbench):
    once = rnnbench("list", "tiny.yaml", "--backend", "fake:honest").stdout
    assert rnnbench("list", "tiny.yaml", ".", "./tiny.yaml", "--backend", "fake:honest").stdout == once

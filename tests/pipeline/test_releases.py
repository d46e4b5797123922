"""The releases of a package come from the index or from a list, in the order of their versions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from rnnbench.pipeline import Release, SideError, between, find_release, list_releases, newest_of_minors, releases
from rnnbench.pipeline.releases import newest_release, released_package, require_release

ANSWER = "fakepackage (1.10.0)\nAvailable versions: 1.10.0, 1.9.2, 1.9.1, 1.8.0\n"


@pytest.fixture
def index(monkeypatch):
    """pip answers with this."""

    def answer(stdout, stderr="", status=0):
        done = SimpleNamespace(stdout=stdout, stderr=stderr, returncode=status)
        monkeypatch.setattr(releases, "run_helper", lambda *_, **__: done)

    answer(ANSWER)
    return answer


def versions(found):
    return [each.version for each in found]


def test_the_index_s_releases_are_ordered_by_version_and_filtered(index):
    assert versions(list_releases("fakepackage")) == ["1.8.0", "1.9.1", "1.9.2", "1.10.0"]
    assert versions(list_releases("fakepackage", ">=1.9,!=1.9.1")) == ["1.9.2", "1.10.0"]
    assert versions(newest_of_minors(list_releases("fakepackage"))) == ["1.8.0", "1.9.2", "1.10.0"]


def test_a_version_without_a_minor_number_is_of_minor_0(index):
    index("Available versions: 2.1, 2.0.1, 2, 1.0\n")
    assert versions(newest_of_minors(list_releases("fakepackage"))) == ["1.0", "2.0.1", "2.1"]


def test_the_newest_release_is_a_pre_release_only_where_that_is_asked_for(index):
    index("Available versions: 2.0rc1, 1.10.0, 1.9.2\n")
    assert [newest_release("fakepackage", pre=pre).version for pre in (False, True)] == ["1.10.0", "2.0rc1"]
    index("Available versions: 2.0rc1\n")
    with pytest.raises(SideError, match="has pre-releases only; ask for them with --pre"):
        newest_release("fakepackage")


def test_versions_that_are_named_need_no_index(monkeypatch):
    monkeypatch.setattr(releases, "run_helper", None)
    assert versions(list_releases("fakepackage", "1.10, 1.9.1rc1")) == ["1.9.1rc1", "1.10"]


def test_a_list_has_versions_and_days_and_is_filtered(monkeypatch, tmp_path):
    monkeypatch.setattr(releases, "run_helper", None)
    (tmp_path / "list").write_text("# all\n1.9.1 2026-02-17\n1.8.0  # old\n\n1.10.0\n")
    found = list_releases("fakepackage", ">=1.9", tmp_path / "list")
    assert found == (Release("fakepackage", "1.9.1", "2026-02-17"), Release("fakepackage", "1.10.0"))


def test_a_list_that_is_not_there_is_named(tmp_path):
    (tmp_path / "releases.txt").touch()
    with pytest.raises(SideError, match=r"release\.txt: does not exist; did you mean 'releases\.txt'\?"):
        list_releases("fakepackage", "", tmp_path / "release.txt")
    with pytest.raises(SideError, match="cannot be read: Is a directory; expected a text file with a version a line"):
        list_releases("fakepackage", "", tmp_path)


def test_a_version_that_is_none_is_named_with_its_place(index, tmp_path):
    (tmp_path / "list").write_text("1.9\n")
    with pytest.raises(SideError, match=r"^--versions: Invalid version: '1e400'; expected a version such as"):
        list_releases("fakepackage", "1.9,1e400", tmp_path / "list")
    with pytest.raises(SideError, match=r"^--good 'x': expected a version of fakepackage, such as"):
        find_release(list_releases("fakepackage"), "fakepackage", "x", "--good")


@pytest.mark.parametrize(
    ("text", "content", "message"),
    [
        ("=>1", None, r"--versions '=>1': expected a specifier such as"),
        ("1.x", None, r"expected a version such as"),
        (">=3", None, r"no release is >=3; the releases are 1.8.0, 1.9.1, 1.9.2, 1.10.0"),
        ("", "1.8 yesterday\n", r"list:1: expected a version, and its day"),
        ("", "1.9\n1.8 2026-02-17 yanked\n", r"list:2: expected a version, and its day"),
        ("", "newest\n", r"list: .*newest.*expected a version"),
        ("1." + "9" * 5000, None, r"expected a version such as"),
        (">=1." + "9" * 5000, None, r"expected a specifier such as"),
    ],
)
def test_a_wrong_version_or_list_of_releases_is_refused_with_what_is_expected(index, tmp_path, text, content, message):
    listed = None
    if content is not None:
        listed = tmp_path / "list"
        listed.write_text(content)
    with pytest.raises(SideError, match=message):
        list_releases("fakepackage", text, listed)


def test_an_index_without_an_answer_is_named_with_what_to_do(index):
    index("", "ERROR: No matching distribution found for fakepackage\n", 1)
    with pytest.raises(
        SideError, match=r"No matching distribution found for fakepackage; check the name \(--package\); .*--list FILE$"
    ):
        list_releases("fakepackage")


def test_a_version_that_the_index_lacks_is_refused_with_the_newest_ones(index):
    for text in ("fakepackage==1.9.1", "fakepackage>=1.8,<2", "fakepackage~=1.9"):
        require_release(Requirement(text), text)
    refused = (
        r"^'fakepackage==99 x==1': the package index has no fakepackage==99 for Python 3\.\d+\.\d+ on this machine; "
        r"the newest of 4 versions: 1\.10\.0, 1\.9\.2, 1\.9\.1, 1\.8\.0$"
    )
    with pytest.raises(SideError, match=refused):
        require_release(Requirement("fakepackage==99"), "fakepackage==99 x==1")
    index("", "ERROR: No matching distribution found for fakepackage\n", 1)
    with pytest.raises(SideError, match=r"found for fakepackage; check the name$"):
        require_release(Requirement("fakepackage==99"), "fakepackage==99")


def test_releases_between_two_have_both_ends_also_where_the_list_lacks_them(index):
    found = list_releases("fakepackage", ">=1.9.2")
    good, bad = (find_release(found, "fakepackage", text, "--good") for text in ("1.9.0", "1.10"))
    assert versions(between(found, good, bad)) == ["1.9.0", "1.9.2", "1.10.0"]


def test_what_a_release_needs_beside_it_is_in_its_requirements():
    assert Release("onnxruntime", "1.18.1").requirements == "onnxruntime==1.18.1 numpy<2"
    assert Release("onnxruntime", "1.20.0").requirements == "onnxruntime==1.20.0"
    assert Release("iree-base-compiler", "3.7.1").requirements == "iree-base-compiler==3.7.1 iree-base-runtime==3.7.*"


def test_a_backend_s_package_is_the_first_of_its_probe():
    assert released_package("fake") == "rnnbench-fake"
    with pytest.raises(SideError, match=r"absent: .*--package NAME"):
        released_package("absent")

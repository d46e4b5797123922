"""Where the cache of a user is, how large it may be, and what is said where it cannot be used."""

from __future__ import annotations

import pytest

from rnnbench.cache import MAKING
from rnnbench.pipeline import CacheError, usable_cache, user_cache
from rnnbench.pipeline.cache_folder import FOLDER, SIZE


@pytest.fixture(autouse=True)
def no_variables(monkeypatch, tmp_path):
    for name in (FOLDER, SIZE):
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))


def test_it_is_in_the_user_s_cache_and_has_four_gibibytes(tmp_path):
    cache = user_cache()
    assert (cache.path, cache.bound, cache.reads) == (tmp_path / "home/rnnbench/artifacts", 4 << 30, True)


def test_variables_name_another_folder_and_size(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path / "mine"))
    monkeypatch.setenv(SIZE, "1.5GiB")
    assert (user_cache().path, user_cache().bound) == (tmp_path / "mine", 3 << 29)
    monkeypatch.setenv(SIZE, "1000")
    assert user_cache().bound == 1000


@pytest.mark.parametrize("text", ["much", "-1", "4 cows", "nan"])
def test_a_size_that_is_none_is_a_mistake(text, monkeypatch):
    monkeypatch.setenv(SIZE, text)
    with pytest.raises(CacheError, match=f"{SIZE} is '{text}'; expected a size such as 4GiB, or 0 for no cache"):
        user_cache()


def test_it_is_made_for_its_owner_alone(tmp_path):
    warnings = []
    cache = usable_cache(warnings.append)
    assert cache is not None
    assert (cache.path.stat().st_mode & 0o777, warnings) == (0o700, [])


def test_what_killed_runs_left_half_written_goes_when_the_next_run_begins(tmp_path):
    left = tmp_path / "home/rnnbench/artifacts/numpy" / f"{MAKING}x"
    (left / "files").mkdir(parents=True)
    assert usable_cache(pytest.fail) is not None
    assert not left.exists()


def test_a_size_of_0_is_no_cache(monkeypatch, tmp_path):
    monkeypatch.setenv(SIZE, "0")
    assert usable_cache(pytest.fail) is None
    assert not (tmp_path / "home").exists()


def test_a_folder_that_cannot_be_written_is_a_warning(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(FOLDER, str(tmp_path / "file/cache"))
    warnings = []
    assert usable_cache(warnings.append) is None
    (warning,) = warnings
    assert "file/cache cannot be written (Not a directory): every program is built, and none is kept" in warning


def test_a_user_without_a_home_has_no_cache_and_is_told(monkeypatch):
    """A container may run as a user that it does not know. A folder `~` in the working folder would be no home."""
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(CacheError, match=rf"no home folder for ~/.cache/rnnbench/artifacts; .* with {FOLDER}"):
        user_cache()
    warnings = []
    assert usable_cache(warnings.append) is None
    assert len(warnings) == 1
    monkeypatch.setenv(SIZE, "0")
    assert usable_cache(pytest.fail) is None


def test_a_home_that_no_shell_has_replaced_is_replaced(monkeypatch, tmp_path):
    """As in `ENV RNNBENCH_CACHE=~/cache` of a Dockerfile."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(FOLDER, "~/cache")
    assert user_cache().path == tmp_path / "cache"


@pytest.mark.parametrize(("mode", "is_used"), [(0o755, True), (0o775, False), (0o777, False), (0o1777, False)])
def test_a_folder_that_others_can_write_into_is_not_used(mode, is_used, monkeypatch, tmp_path):
    """Runs execute the programs in it."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setenv(FOLDER, str(folder))
    warnings = []
    assert (usable_cache(warnings.append) is not None) == is_used
    assert [f"{folder} belongs to another user, or others may write into it" in text for text in warnings] == (
        [] if is_used else [True]
    )


def test_a_folder_of_another_user_is_not_used(monkeypatch, tmp_path):
    (tmp_path / "theirs").mkdir(mode=0o700)
    monkeypatch.setenv(FOLDER, str(tmp_path / "theirs"))
    monkeypatch.setattr("os.geteuid", lambda: (tmp_path / "theirs").stat().st_uid + 1)
    warnings = []
    assert usable_cache(warnings.append) is None
    assert "belongs to another user" in warnings[0]

"""Samples come back as they were written, thinned evenly where there are many."""

from __future__ import annotations

from pathlib import Path

import fake_records as fake
import numpy as np
import pytest
from quick_tests import runs_all

from rnnbench.results import SAMPLES_CAP, StoreError, read_run, read_samples, samples_file, save_samples
from rnnbench.results.samples import SAMPLE_COLUMNS as COLUMNS


def rows(count: int) -> np.ndarray:
    return np.column_stack([np.arange(count, dtype=float) for _ in COLUMNS])


def test_a_few_samples_are_all_kept(tmp_path: Path) -> None:
    assert save_samples(tmp_path, "3f9a01c2", "bound", rows(7)) == 7
    assert np.array_equal(read_samples(tmp_path, "3f9a01c2", "bound"), rows(7))
    assert np.array_equal(read_samples(tmp_path, "case/a:b/looped-stitched/h1-3f9a01c2", "bound"), rows(7))
    assert samples_file(tmp_path, "3f9a01c2", "bound") == tmp_path / "samples" / "3f9a01c2.bound.npy"


def test_many_samples_are_thinned_evenly_in_the_order_of_time(tmp_path: Path) -> None:
    assert save_samples(tmp_path, "3f9a01c2", "cold", rows(10 * SAMPLES_CAP)) == SAMPLES_CAP
    ends = read_samples(tmp_path, "3f9a01c2", "cold")[:, COLUMNS.index("end")]
    steps = np.diff(ends)
    assert (ends[0], ends[-1]) == (0, 10 * SAMPLES_CAP - 1)
    assert set(steps) <= {10.0, 11.0}


def test_samples_that_are_not_there_or_broken_say_why(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"3f9a01c2\.bound\.npy does not exist: .*same_as"):
        read_samples(tmp_path, "3f9a01c2", "bound")
    save_samples(tmp_path, "3f9a01c2", "bound", rows(7))
    samples_file(tmp_path, "3f9a01c2", "bound").write_bytes(b"no array")
    with pytest.raises(StoreError, match="cannot be read"):
        read_samples(tmp_path, "3f9a01c2", "bound")
    with samples_file(tmp_path, "3f9a01c2", "bound").open("wb") as archive:
        np.savez(archive, rows=rows(7))
    with pytest.raises(StoreError, match="is a NpzFile and no array"):
        read_samples(tmp_path, "3f9a01c2", "bound")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 5), }".ljust(117) + b"\n"
    samples_file(tmp_path, "3f9a01c2", "bound").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + header)
    with pytest.raises(StoreError, match="cannot be read"):
        read_samples(tmp_path, "3f9a01c2", "bound")

    for wrong in (rows(7)[:, :3], np.arange(5.0), rows(7).astype(int)):
        np.save(samples_file(tmp_path, "3f9a01c2", "bound"), wrong)
        with pytest.raises(StoreError, match="not rows of process, block, end, seconds, disturbed"):
            read_samples(tmp_path, "3f9a01c2", "bound")


@pytest.mark.filterwarnings("ignore:Reading `.npy`")
def test_one_flipped_bit_of_a_file_is_told(tmp_path: Path) -> None:
    """It makes another time of a digit, or another shape. The proof flips all bits of each byte."""
    save_samples(tmp_path, "3f9a01c2", "bound", rows(7))
    file = samples_file(tmp_path, "3f9a01c2", "bound")
    content = file.read_bytes()
    for bit in range(8 * len(content)) if runs_all() else [8 * at + at % 8 for at in range(len(content))]:
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        with pytest.raises(StoreError, match="cannot be read"):
            read_samples(tmp_path, "3f9a01c2", "bound")


def test_numpy_reads_a_file_of_samples_and_one_without_a_digest_is_read(tmp_path: Path) -> None:
    """An earlier rnnbench wrote none."""
    save_samples(tmp_path, "3f9a01c2", "bound", rows(7))
    file = samples_file(tmp_path, "3f9a01c2", "bound")
    assert np.array_equal(np.load(file), rows(7))
    np.save(file, rows(8))
    assert np.array_equal(read_samples(tmp_path, "3f9a01c2", "bound"), rows(8))


def test_an_archive_in_the_place_of_samples_is_refused_whole_or_torn(tmp_path: Path) -> None:
    file = samples_file(tmp_path, "3f9a01c2", "bound")
    file.parent.mkdir()
    np.savez(file.with_suffix(".npz"), rows=rows(7))
    archive = file.with_suffix(".npz").read_bytes()
    for length in (4, 100, len(archive) - 1, len(archive)):
        file.write_bytes(archive[:length])
        with pytest.raises(StoreError, match="cannot be read: "):
            read_samples(tmp_path, "3f9a01c2", "bound")


def test_rows_of_another_shape_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="process, block, end, seconds, disturbed"):
        save_samples(tmp_path, "3f9a01c2", "bound", rows(7)[:, :3])


def seconds_of(*values: float) -> np.ndarray:
    found = np.zeros((len(values), len(COLUMNS)))
    found[:, COLUMNS.index("seconds")] = values
    return found


def test_samples_that_are_not_those_of_the_record_are_refused(tmp_path: Path) -> None:
    """Of two trials in each other's place, for example."""
    own = seconds_of(1e-6, 3e-6, 2e-6)
    record = fake.record()
    record = fake.with_latencies(record, bound=fake.of_samples(record.timing.latency["bound"], own))
    run = read_run(fake.write_run(tmp_path / "run", [record]))
    save_samples(run.path, record.trial[-8:], "bound", own)
    assert np.array_equal(run.samples(record.trial), own)
    for other, why in (
        (own[:2], "2 of them, and 3 were kept"),
        (seconds_of(1e-6, 3e-6, 2.9e-6, 2e-6), "4 of them"),
        (seconds_of(1.1e-6, 3e-6, 2e-6), r"they take 1.1e-06 to 3e-06 s, and the record's 1e-06 to 3e-06 s"),
    ):
        save_samples(run.path, record.trial[-8:], "bound", other)
        with pytest.raises(StoreError, match=why):
            run.samples(record.trial)


def test_of_thinned_samples_none_is_beyond_those_of_the_record(tmp_path: Path) -> None:
    record = fake.record()
    latency = fake.of_samples(record.timing.latency["bound"], seconds_of(1e-6, 3e-6))
    thinned = latency.model_copy(update={"count": 10 * SAMPLES_CAP})
    run = read_run(fake.write_run(tmp_path / "run", [fake.with_latencies(record, bound=thinned)]))
    for kept, fits in ((seconds_of(1.5e-6, 2e-6), True), (seconds_of(1.5e-6, 4e-6), False)):
        save_samples(run.path, record.trial[-8:], "bound", kept)
        if fits:
            assert np.array_equal(run.samples(record.trial), kept)
        else:
            with pytest.raises(StoreError, match="does not have the samples of this record"):
                run.samples(record.trial)

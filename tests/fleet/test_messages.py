"""What nodes and driver tell each other: it survives the way, and what is none of it is refused."""

from __future__ import annotations

import base64
import io
import pickle

import fake_records as fake
import numpy as np
import pytest
from harness_trials import expected_failure, make_trial

from rnnbench.fleet.messages import (
    GroupDone,
    GroupFailed,
    GroupWork,
    MessageError,
    StageBegun,
    TrialDone,
    decode,
    decode_samples,
    decode_work,
    encode,
    encode_samples,
    encode_work,
)
from rnnbench.results import SAMPLE_COLUMNS, SAMPLES_CAP, Conditions


@pytest.mark.parametrize(
    "message",
    [
        StageBegun("case/trial", "build"),
        TrialDone(fake.record("fakelib", "ops", bound=1e-4), {"bound": "AAAA"}),
        GroupDone({"total": 1.5}, Conditions(steal=None, load=(0.1, 0.2))),
        GroupFailed("the disk is full"),
    ],
)
def test_a_message_is_the_same_at_the_other_end_and_one_line(message):
    line = encode(message)
    assert b"\n" not in line
    assert decode(line) == message


def test_work_is_the_same_at_the_other_end():
    of_trials = {"version": {"rnnbench-fake": "<2"}, "route": ("honest",), "where": {"chunk": ("2",)}}
    expected = expected_failure(**of_trials, upstream="fake/project#7")
    work = GroupWork((make_trial(), make_trial(chunk=2)), {"harness": (expected,)}, seed=3, timed=True, jobs=2)
    assert decode_work(encode_work(work)) == work


@pytest.mark.parametrize("samples", [2, SAMPLES_CAP])
def test_samples_are_the_same_at_the_other_end(samples):
    rows = np.arange(float(samples * len(SAMPLE_COLUMNS))).reshape(samples, -1)
    np.testing.assert_array_equal(decode_samples(encode_samples(rows)), rows)


def objects():
    file = io.BytesIO()
    np.save(file, np.array([[object()] * len(SAMPLE_COLUMNS)]), allow_pickle=True)
    return base64.b64encode(file.getvalue()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "no base64",
        base64.b64encode(b"no array").decode(),
        base64.b64encode(pickle.dumps({})).decode(),
        objects(),
        base64.b64encode(b"PK\x03\x04 no archive").decode(),
        base64.b64encode(b"\x93NUMPY\x01\x00\x10\x00{'descr': ('f8'  \n").decode(),
        encode_samples(np.zeros((2, 3))),
        encode_samples(np.zeros(len(SAMPLE_COLUMNS))),
        encode_samples(np.zeros((SAMPLES_CAP + 1, len(SAMPLE_COLUMNS)))),
        encode_samples(np.zeros((2, len(SAMPLE_COLUMNS)), dtype=np.float32)),
    ],
)
def test_what_are_no_samples_is_refused_and_runs_nothing(text):
    with pytest.raises(MessageError, match="samples"):
        decode_samples(text)


def test_of_several_mistakes_in_a_message_the_first_is_named():
    with pytest.raises(MessageError, match=r"^stage\.trial: "):
        decode(b'{"kind": "stage"}')

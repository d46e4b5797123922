"""What is sent to a worker is what it reads."""

from __future__ import annotations

import json

import numpy as np
from harness_trials import make_trial

from rnnbench.measure.sampling import Block
from rnnbench.run.messages import Failure, read_block, read_failure, read_trial, write_block, write_failure, write_trial


def test_a_trial_survives_the_wire():
    trial = make_trial()
    assert read_trial(json.loads(json.dumps(write_trial(trial)))) == trial


def test_a_block_survives_the_wire_to_the_bit():
    block = Block(12.5, 3, np.array([1e-6, 2.5e-6, 3e-9]))
    again = read_block(json.loads(json.dumps(write_block(block))))
    assert (again.start, again.warm_calls, again.calls) == (12.5, 3, 6)
    assert again.seconds.tobytes() == block.seconds.tobytes()


def test_a_reply_tells_failure_from_success():
    failure = Failure("crashed", "died of SIGSEGV")
    assert read_failure(write_failure(failure)) == failure
    assert read_failure({"load_s": 1.0}) is None

"""What is said of a trial before anything runs: its support, and why it cannot be run."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from harness_trials import make_trial
from waiting import PATIENCE_S

from rnnbench.backends import Probe, Support, request_of
from rnnbench.backends.base import Lack
from rnnbench.cases import Precision
from rnnbench.devices import Device
from rnnbench.plan import examination, examine
from rnnbench.plan.examination import examine_all
from rnnbench.rnn.weights import Weights


def test_a_trial_that_can_be_run_has_no_failure():
    examined = examine(make_trial())
    assert examined.failure is None
    assert examined.support.level == "native"
    assert examined.probe.versions == {"rnnbench-fake": "1.0"}


def test_a_failure_names_its_stage_outcome_and_reason():
    unsupported = examine(make_trial(time="fused")).failure
    assert (unsupported.stage, unsupported.outcome) == ("support", "unsupported")
    assert unsupported.reason == "the fake has no RNN operator"
    missing = examine(make_trial("absent:honest")).failure
    assert (missing.stage, missing.outcome) == ("probe", "unavailable")
    assert "pip install 'rnnbench[absent]'" in missing.reason
    broken = examine(make_trial("fake:support-raises")).failure
    assert (broken.stage, broken.outcome) == ("support", "run-failed")


def test_a_request_has_what_the_trial_asks_for():
    trial = make_trial()
    request = request_of(trial, Weights(()))
    assert (request.route, request.model, request.strategy) == ("honest", trial.model, trial.strategy)
    assert (request.batch, request.device, request.threads) == (1, "cpu", 1)
    assert request.precision == Precision.of("float32")
    assert not request.ragged


def test_a_missing_device_is_unavailable_and_says_how_to_install_it(monkeypatch):
    lack = Lack("the driver lists none", "apt-get install a-driver")
    installed = Probe(("honest",), devices={"cpu": Device("a processor"), "vulkan": lack})
    monkeypatch.setattr(examination, "probe", lambda backend: installed)
    monkeypatch.setattr(examination, "supports", lambda backend, requests: [Support("native") for _ in requests])
    (missing,) = examine_all([replace(make_trial(), device="vulkan")])
    assert (missing.failure.stage, missing.failure.outcome) == ("probe", "unavailable")
    assert missing.failure.reason == "the driver lists none; install it with: apt-get install a-driver"
    assert examine_all([make_trial()])[0].failure is None


def test_a_device_that_a_backend_does_not_name_is_unsupported():
    failure = examine(replace(make_trial(), device="vulkan")).failure
    assert (failure.stage, failure.outcome) == ("support", "unsupported")
    assert "has programs for cpu and none for vulkan" in failure.reason


def test_no_framework_is_imported():
    """In a process of its own: this one has imported some for other tests."""
    script = (
        "import sys\n"
        "from harness_trials import make_trial\n"
        "from rnnbench.plan import examine\n"
        "for target in ('iree:linalg', 'tvm:tir', 'torch:eager', 'onnxruntime:onnx', 'jax:jit'):\n"
        "    examine(make_trial(target))\n"
        "print(sorted({'iree', 'tvm', 'torch', 'onnxruntime', 'jax', 'tensorflow'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert done.stdout.splitlines()[-1] == "[]"

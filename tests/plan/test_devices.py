"""Devices that are not here are refused, with what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness_trials import make_trial

from rnnbench.backends import Probe
from rnnbench.backends.base import Lack
from rnnbench.backends.registry import BackendError
from rnnbench.devices import Device
from rnnbench.plan import devices

LACK = Lack("the driver lists none", "apt-get install a-driver")


def test_a_named_backend_without_the_device_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(devices, "probe_or_stand_in", lambda backend: Probe(("r",), devices={"vulkan": LACK}))
    devices.require_devices([make_trial()])
    with pytest.raises(BackendError, match=r"fake is not available on vulkan: the driver lists none; .* a-driver"):
        devices.require_devices([replace(make_trial(), device="vulkan")])


def test_the_device_of_the_first_backend_that_finds_one_is_taken_and_else_each_says_why(monkeypatch):
    gpu = Device("a GPU", "a driver", "9.0")
    found = {"one": {}, "two": {"cuda": LACK}, "three": {"cuda": gpu}}
    monkeypatch.setattr(devices, "probe_or_stand_in", lambda backend: Probe(("r",), devices=found[backend]))
    for installed, device in (
        (["one", "two", "three"], gpu),
        (["one", "two"], "two: the driver lists none"),
        (["one"], "no installed backend has programs for it"),
    ):
        monkeypatch.setattr(devices, "installed_backends", lambda installed=installed: installed)
        assert devices.device_of_backends("cuda") == device

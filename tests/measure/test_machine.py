"""The machine is described with what can be read, and with nothing that cannot."""

from __future__ import annotations

import json

from rnnbench.measure import describe_machine


def test_the_description_goes_into_json_and_has_what_every_linux_tells():
    machine = json.loads(json.dumps(describe_machine()))
    assert machine["cores"] >= machine["usable_cores"] >= 1
    assert machine["memory"] > 1 << 28
    assert 0 < machine["clock_resolution_s"] < 1e-3
    assert None not in machine.values()

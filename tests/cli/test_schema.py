"""`rnnbench schema`: the JSON Schema of case files."""

from __future__ import annotations

import json


def test_the_schema_is_json(rnnbench):
    assert json.loads(rnnbench("schema").stdout)["type"] == "object"

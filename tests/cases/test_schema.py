"""Each key takes what it should, and tells what it expected of everything else, with line and column."""

from __future__ import annotations

import copy
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from quick_tests import examples

from rnnbench.cases import case_files, json_schema
from rnnbench.cases.schema import LEAVES, SECTIONS, CaseFile
from rnnbench.rnn import families
from rnnbench.yaml_files.schema_errors import expected

FAMILIES = [family for family in families().values() if family.keys_in_case]
SHIPPED = Path(__file__).parents[2] / "cases"
CASES = [*case_files(SHIPPED), *case_files(SHIPPED / "conformance")]

SIZE = "expected a whole number from 1 to 65,536"


def test_leaf_names_are_unique_over_the_sections():
    assert len(LEAVES) == sum(len(section.model_fields) for section in SECTIONS.values())


def test_the_model_section_has_the_keys_of_all_families_and_describes_each():
    keys = {key: field for family in FAMILIES for key, field in family.model_fields.items()}
    assert list(SECTIONS["model"].model_fields) == ["network", *keys]
    assert all(field.description for field in keys.values())


def test_what_each_key_expects_can_be_said():
    """Of the keys of every network too: their limits are their own."""
    schema = json_schema()
    said = {key: expected((section, key), schema) for section, model in SECTIONS.items() for key in model.model_fields}
    assert all(said.values())
    assert said["blank_bias"] == "a number from -1,000.0 to 1,000.0, or a list of such"


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({}, "a finite number"),
        ({"minimum": 2}, "a number of at least 2"),
        ({"maximum": 5}, "a number of at most 5"),
        ({"minimum": 2, "maximum": 5}, "a number from 2 to 5"),
        ({"exclusiveMinimum": 0, "maximum": 1000}, "a number above 0, at most 1,000"),
    ],
)
def test_a_number_is_said_with_the_limits_that_it_has(node, words):
    assert expected(("gain",), {"properties": {"gain": {"type": "number", **node}}}) == words


@pytest.mark.parametrize(
    ("replaced", "by", "message"),
    [
        ("16, 32", '"128", 32', f"case.yaml:3:40: model.hidden[0]: {SIZE}, got the text '128'"),
        ("16, 32", "128.0", f"case.yaml:3:40: model.hidden[0]: {SIZE}, got 128.0"),
        ("16, 32", "8, true", f"case.yaml:3:43: model.hidden[1]: {SIZE}, got true"),
        ("16, 32", "0", f"case.yaml:3:40: model.hidden[0]: {SIZE}, got 0"),
        ("16, 32", "65537", f"case.yaml:3:40: model.hidden[0]: {SIZE}, got 65537"),
        ("16, 32", "[1]", f"case.yaml:3:40: model.hidden[0]: {SIZE}, got a list of 1"),
        ("[16, 32]", "{}", f"case.yaml:3:39: model.hidden: {SIZE}, or a list of such, got a mapping"),
        ("[16, 32]", "", f"case.yaml:3:38: model.hidden: {SIZE}, or a list of such, got nothing"),
        ("lstm", "lsmt", "got the text 'lsmt'; did you mean 'lstm'?"),
        ("lstm", "lstm, bias: yes", "case.yaml:3:27: model.bias: expected true or false, or a list of such, got the"),
        ("lstm", "lstm, clip: 0", "case.yaml:3:27: model.clip: expected a number above 0 or null, or a list of such"),
        ("lstm", "lstm, clip: .inf", "case.yaml:3:27: model.clip: expected a number above 0 or null, or a list of"),
        (
            "schema: 1",
            "schema: 2",
            "case.yaml:1:9: has schema 2, and this rnnbench reads schemas up to 1; upgrade rnnbench",
        ),
        ("schema: 1", "schema: 0", "case.yaml:1:9: schema: expected 1, got 0"),
        ("schema: 1", "schema: true", "case.yaml:1:9: schema: expected 1, got true"),
        ("name: tiny", "name: a/b", "case.yaml:2:7: name: expected a name of 1 to 64 lower-case letters, digits,"),
        ("steps: 10", "steps: 1000001", "case.yaml:4:19: workload.steps: expected a whole number from 1 to 1,000,000"),
        ("[1, 4]", "al", "case.yaml:4:30: workload.chunk: expected a whole number from 1 to 1,000,000 or all, or"),
        (
            "steps: 10",
            "steps: 10, dtype: int8",
            "workload.dtype: expected one of float16, bfloat16, float32, float64, int8_weights, int8_dynamic, "
            "int8_static, or a list of such, got the text 'int8'",
        ),
        ("steps: 10", "steps: 10, seed: -1", "workload.seed: expected a whole number from 0 to 4,294,967,295, or"),
        (
            "[looped",
            "[unrolled:1",
            "strategy.time[0]: expected one of fused, looped, unrolled, parallel, given or unrolled:k or chunked:k",
        ),
        ("stitched", "statefull", "got the text 'statefull'; did you mean 'stateful'?"),
        ("", "target: {threads: 0}", "case.yaml:6:19: target.threads: expected a whole number from 1 to 1,024, or a"),
        (
            "",
            "target: {device: gpu}",
            "case.yaml:6:18: target.device: expected one of cpu (the processor), cuda (an NVIDIA GPU), vulkan (a GPU "
            "with a Vulkan driver, or Mesa's software device), or a list of such, got the text 'gpu'",
        ),
        ("", "limits: {build: 120 sec}", "case.yaml:6:17: limits.build: expected a duration from 100ms to 24h, such"),
        (
            "",
            "limits: {build: [1, 2]}",
            "limits.build: expected a duration from 100ms to 24h, such as 120s or 5min, or",
        ),
        ("", "limits: {memory: true}", "case.yaml:6:18: limits.memory: expected a size from 64MiB to 1TiB, such as"),
        ("", "limits: {memory: 1025GiB}", "case.yaml:6:18: limits.memory: expected a size from 64MiB to 1TiB, such as"),
        ("", "limits: {memory: 4GiBs}", "case.yaml:6:18: limits.memory: expected a size from 64MiB to 1TiB, such as"),
        ("", "measure: {budget: 9ms}", "case.yaml:6:19: measure.budget: expected a duration from 10ms to 1h, such as"),
        ("", "measure: {processes: 101}", "measure.processes: expected a whole number from 1 to 100, got 101"),
        (
            "",
            "compare: {latency: 0%}",
            "case.yaml:6:20: compare.latency: expected a share from 0.1% to 90%, such as 5%",
        ),
        ("", "compare: {build: 1001%}", "case.yaml:6:18: compare.build: expected a share from 0% to 1000%, such as"),
        ("", "matrix: {exclude: {hidden: 1}}", "matrix.exclude: expected a list of at most 1,000 mappings, got a map"),
        ("", "matrix:", "case.yaml:6:8: matrix: expected a mapping, got nothing"),
    ],
)
def test_a_wrong_value_is_told_with_what_was_expected(refusal, replaced, by, message):
    (problem,) = refusal(replaced, by)
    assert problem.startswith("case.yaml:")
    assert message in problem


@pytest.mark.parametrize(
    ("replaced", "by", "message"),
    [
        ("", "foo: 1", "case.yaml:6:1: unknown key 'foo'; expected one of schema, name, description, model, workload,"),
        ("", "limit: {}", "case.yaml:6:1: unknown key 'limit'; did you mean 'limits'?"),
        ("steps: 10", "steps: 10, step: 3", "case.yaml:4:23: unknown key 'step' in workload; did you mean 'steps'?"),
        ("steps: 10", "steps: 10, hidden: 3", "4:23: unknown key 'hidden' in workload; did you mean model.hidden?"),
        ("", "matrix: {exclude: [{hiden: 1}]}", "unknown key 'hiden' in matrix.exclude[0]; did you mean 'hidden'?"),
        ("", "matrix: {exclude: [{model.hidden: 16}]}", "unknown key 'model.hidden' in matrix.exclude[0]; did you"),
        ("", "compare: {latencies: 3%}", "unknown key 'latencies' in compare; did you mean 'latency'?"),
        ("", "limits: {tial: 3}", "case.yaml:6:10: unknown key 'tial' in limits; did you mean 'trial'?"),
    ],
)
def test_an_unknown_key_is_told_with_the_nearest_name(refusal, replaced, by, message):
    (problem,) = refusal(replaced, by)
    assert message in problem


def test_a_missing_key_is_told_at_its_section_with_what_to_add(refusal):
    assert refusal("steps: 10, ", "") == [
        "case.yaml:4:1: the key 'steps' is missing in workload; add it: "
        "a whole number from 1 to 1,000,000, or a list of such"
    ]
    assert refusal("strategy", "# strategy") == [
        "case.yaml:1:1: the key 'strategy' is missing; add it: a mapping with time, state"
    ]


def test_every_wrong_key_and_value_is_told_at_once(refusal):
    problems = refusal("lstm, input: 8", "lsmt, inputs: 8, layers: 65")
    assert [problem.split(": ")[0] for problem in problems] == [
        "case.yaml:3:1",
        "case.yaml:3:15",
        "case.yaml:3:21",
        "case.yaml:3:40",
    ]


def test_the_schema_file_is_current():
    written = json.loads(files("rnnbench.cases").joinpath("schema.json").read_text())
    assert written == json.loads(json.dumps(json_schema())), (
        "the case format has changed: rnnbench schema > suite/rnnbench/cases/schema.json"
    )


def test_every_key_has_a_description_for_editors():
    def described(node):
        """The node, or the key of a section that it refers to: a key of a pattern has no description of its own."""
        if "$ref" not in node or "description" in node:
            return node
        section, key = re.fullmatch(r"#/\$defs/(\w+)/properties/(\w+)", node["$ref"]).groups()
        return json_schema()["$defs"][section]["properties"][key]

    def undescribed(node, path=()):
        for name, child in node.get("properties", {}).items():
            if "description" not in described(child):
                yield (*path, name)
        for name, child in node.get("$defs", {}).items():
            yield from undescribed(child, (*path, name))

    assert list(undescribed(json_schema())) == []


@pytest.fixture(scope="module")
def validator():
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(json_schema())
    return jsonschema.Draft202012Validator(json_schema())


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_shipped_cases_hold_against_the_json_schema(path, validator):
    validator.validate(yaml.safe_load(path.read_text()))


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(
    ["", "all", "lstm", "fused", "unrolled:4", "unrolled:1", "120s", "4GiB", "float32", "cpu", "x", "none"]
)  # fmt: skip
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
CASE = {
    "schema": 1,
    "name": "x",
    "model": {"cell": "lstm", "input": 8, "hidden": 16},
    "workload": {"steps": 10},
    "strategy": {"time": "looped", "state": "stitched"},
    "target": {},
    "matrix": {"exclude": [{"hidden": 16}], "include": [{"hidden": 16}]},
    "limits": {},
    "measure": {},
}
PLACES = [
    *((section, leaf) for leaf, section in LEAVES.items()),
    ("matrix", "exclude", 0, "chunk"),
    ("matrix", "include", 0, "cell"),
    *(("limits", key) for key in ("build", "trial", "memory")),
    *(("measure", key) for key in ("budget", "processes")),
    ("name",),
    ("schema",),
    ("matrix", "exclude"),
    ("target",),
]


@examples(80)
@given(st.sampled_from(PLACES), anything)
def test_the_json_schema_and_the_reader_agree(place, value):
    """What an editor underlines is what the reader refuses; bounds on units, and whole numbers as 1.0, apart."""
    jsonschema = pytest.importorskip("jsonschema")
    data = copy.deepcopy(CASE)
    node = data
    for part in place[:-1]:
        node = node[part]
    node[place[-1]] = value
    try:
        read = CaseFile.model_validate(data)
    except ValidationError:
        read = None
    drawn = jsonschema.Draft202012Validator(json_schema()).is_valid(data)
    if read is not None:
        whole = value == [] or (isinstance(value, list) and len(value) != len({repr(item) for item in value}))
        assert drawn or whole
    elif drawn:
        flat = value if isinstance(value, list) else [value]
        assert place[0] in ("limits", "measure") or any(isinstance(item, float) for item in flat)

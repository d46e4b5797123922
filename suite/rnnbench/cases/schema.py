"""The sections and keys of a case file, with their types, bounds and defaults.

The types are strict: a text is not a number, `true` is not 1, and every unknown key is refused. `model:` has the keys
of all families of networks. `measure:` has the keys of the latency paths that `measure.paths` declares. In the sections
that make trials, a list is an axis.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
    create_model,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from rnnbench.cases.matrix import Axes, Value
from rnnbench.cases.quantity import BYTES, SECONDS, SHARE, Quantity
from rnnbench.cases.trial import ENDURANCE_S, STREAM, Launch, Lengths, Limits, Measure, State
from rnnbench.devices import KINDS
from rnnbench.measure import ENERGY, PATHS, SCENARIOS, Setting
from rnnbench.results import THRESHOLDS
from rnnbench.rnn import DTYPES, Model, Size, broken_families, families
from rnnbench.yaml_files import TitleGenerator

T = TypeVar("T")

MAX_PATTERNS = 1_000
"""Most entries of `matrix.exclude`, and of `matrix.include`."""
MAX_VALUES = 1_000
"""Most values of one axis."""
MAX_STEPS = 1_000_000


class _AxisMarker:
    """Reads a scalar as a list of one, and shows editors both."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def listed(value: object) -> object:
            return tuple(value) if isinstance(value, list) else (value,)

        return core_schema.no_info_before_validator_function(listed, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        array = handler(schema)
        return {"anyOf": [array["items"], {**array, "minItems": 1, "uniqueItems": True}]}


Axis = Annotated[tuple[T, ...], Field(max_length=MAX_VALUES), _AxisMarker()]


def axis_of(kind: Any) -> Any:
    """Axis[kind] for a kind that is only known at run time."""
    return Annotated[tuple[kind, ...], Field(max_length=MAX_VALUES), _AxisMarker()]


_NAME = r"^[a-z0-9][a-z0-9_.-]{0,63}$"
_COPIES = r"^(unrolled|chunked):([2-9]|[1-9][0-9]{1,5})$"

Name = Annotated[
    str,
    Field(pattern=_NAME),
    WithJsonSchema(
        {"type": "string", "pattern": _NAME, "title": "a name of 1 to 64 lower-case letters, digits, '_', '-' and '.'"}
    ),
]
Steps = Annotated[int, Field(ge=1, le=MAX_STEPS)]
Chunk = Steps | Literal["all"]
Copies = Annotated[
    str,
    Field(pattern=_COPIES),
    WithJsonSchema({"type": "string", "pattern": _COPIES, "title": "unrolled:k or chunked:k with k from 2"}),
]
_TARGET = r"^[a-z0-9][a-z0-9_.-]*:[a-z0-9][a-z0-9_.-]*$"
_PIN = r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*"
_PINS = rf"^{_PIN}( {_PIN})*$"
Pinned = Annotated[
    dict[Annotated[str, Field(pattern=_TARGET)], Annotated[str, Field(pattern=_PINS, max_length=1_000)]],
    Field(min_length=1),
    WithJsonSchema(
        {
            "type": "object",
            "title": "targets with their pins, such as {numpy:eager: numpy==2.2.6}",
            "minProperties": 1,
            "propertyNames": {"pattern": _TARGET, "title": "a target such as onnxruntime:onnx"},
            "additionalProperties": {
                "type": "string",
                "pattern": _PINS,
                "maxLength": 1_000,
                "title": "exact versions such as onnxruntime==1.22.1 numpy==2.2.6",
            },
        }
    ),
]
Time = Literal["fused", "looped", "unrolled", "parallel", "given"] | Copies
Dtype = Literal["float16", "bfloat16", "float32", "float64", "int8_weights", "int8_dynamic", "int8_static"]
"""The names of `rnn.DTYPES`."""
ITEMSIZE = {name: dtype.itemsize for name, dtype in DTYPES.items()}
"""Bytes of one element."""
DeviceName: Any = Annotated[
    Literal[tuple(KINDS)],
    WithJsonSchema(
        {
            "type": "string",
            "enum": [*KINDS],
            "title": "one of " + ", ".join(f"{name} ({kind.meaning})" for name, kind in KINDS.items()),
        }
    ),
]
BuildTime = Annotated[float, Quantity("duration", SECONDS, "100ms", "24h", "120s or 5min", "seconds")]
Endurance = Annotated[float, Quantity("duration", SECONDS, "1ms", "1h", "50ms or 10s", "seconds")]
Budget = Annotated[float, Quantity("duration", SECONDS, "10ms", "1h", "500ms or 2s", "seconds")]
Duration = Annotated[float, Quantity("duration", SECONDS, "0.1ms", "60s", "10ms or 1s", "seconds")]
Precision = Annotated[float, Quantity("share", SHARE, "0.1%", "50%", "1% or 2.5%", "")]
Memory = Annotated[int, Quantity("size", BYTES, "64MiB", "1TiB", "4GiB or 512MiB", "bytes")]


class Section(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class WorkloadSection(Section):
    steps: Axis[Steps] = Field(description="Time steps of the whole stream.")
    batch: Axis[Size] = Field(default=(1,), description="Streams that advance together in one call.")
    chunk: Axis[Chunk] = Field(default=("all",), description="Time steps of one call; `all` is the workload's steps.")
    dtype: Axis[Dtype] = Field(
        default=("float32",),
        description="Type of weights, arithmetic and state. Three have weights in int8 and a state in float32: "
        "with int8_weights products are in float32; with int8_dynamic x and h enter them in 8 bits, by their range in "
        "each call; with int8_static by a range that is calibrated beforehand.",
    )
    seed: Axis[Annotated[int, Field(ge=0, lt=2**32)]] = Field(default=(0,), description="Seed of weights and inputs.")
    lengths: Axis[Lengths] = Field(
        default=("full",),
        description="Whether all rows of a batch are as long as a call, or each has a length of its own (state none).",
    )


class StrategySection(Section):
    time: Axis[Time] = Field(
        description="How time advances inside one call: the runtime's own operator (fused), a loop (looped), "
        "a copy of the body per step (unrolled), a loop over k copies (unrolled:k), or as a model file has it (given). "
        "Where the state is linear in itself, also all steps at once (parallel) or in blocks of k (chunked:k)."
    )
    state: Axis[State] = Field(
        description="Who carries the state between calls: nobody (none: each call is a whole sequence), "
        "the caller (stitched), the program (stateful)."
    )
    launch: Axis[Launch] = Field(
        default=(STREAM,),
        description="How the work of a call reaches the device: one operation after the other (stream), or recorded "
        "once and replayed (graph). The processor has stream only.",
    )


class TargetSection(Section):
    device: Axis[DeviceName] = Field(default=("cpu",), description="Where the program runs.")
    threads: Axis[Annotated[int, Field(ge=1, le=1024)]] = Field(
        default=(1,), description="Threads the runtime may use."
    )


class LimitsSection(Section):
    build: BuildTime = Field(default=Limits.build, description="What one build may take.")
    trial: BuildTime = Field(default=Limits.trial, description="What one trial may take in all, its build included.")
    memory: Memory = Field(default=Limits.memory, description="Resident memory of one trial's processes.")
    endurance: Endurance = Field(
        default=ENDURANCE_S, description="What each long-running check may take in `rnnbench check`."
    )
    enough: Endurance | None = Field(
        default=None,
        description="After this time a long-running check ends once it has the calls that it needs. And no check "
        "repeats anything more often than the known faults need to show.",
    )
    reference: BuildTime = Field(
        default=Limits.reference, description="What the reference of one trial may take, beside the trial itself."
    )


class _SamplingSection(Section):
    budget: Budget = Field(
        default=Measure.budget, description="Sampling time of one trial: all processes, rounds and latencies."
    )
    processes: Annotated[int, Field(ge=1, le=100)] = Field(
        default=Measure.processes,
        description="Fresh processes that sample one trial; up to twice as many where the precision asks for them.",
    )
    precision: Precision = Field(
        default=Measure.precision,
        description="Half the 95 % interval of a median, relative to it, at which sampling stops before its budget.",
    )


SETTINGS: dict[str, Setting] = {
    setting.key: setting
    for setting in (
        *(path.setting for path in PATHS.values() if path.setting),
        *(scenario.setting for scenario in SCENARIOS.values()),
        ENERGY,
    )
}
"""The keys of `measure:` that ask for a latency path, a scenario or the energy of a step."""


Rate = Annotated[float, Field(ge=0.01, le=1_000_000)]
SETTING_KINDS: dict[str, tuple[Any, object]] = {
    "flag": (bool, False),
    "duration": (Duration | None, None),
    "rate": (Rate | None, None),
}
"""The type and the default of a key, by the kind of its setting."""


def measure_section() -> type[Section]:
    """The section `measure`: how long to sample, and a key for each of `SETTINGS`."""
    fields: dict[str, Any] = {}
    for key, setting in SETTINGS.items():
        kind, default = SETTING_KINDS[setting.kind]
        fields[key] = (kind, Field(default=default, description=setting.description))
    return create_model("MeasureSection", __base__=_SamplingSection, **fields)


MeasureSection = measure_section()


def _compare_section() -> type[Section]:
    fields: dict[str, Any] = {}
    for key, one in THRESHOLDS.items():
        share = Quantity("share", SHARE, f"{100 * one.least:g}%", f"{one.most:.0%}", "5% or 12.5%", "")
        kind = Annotated[float, share] | None
        fields[key] = (kind, Field(default=None, description=f"{one.description} null: {100 * one.default:g}%."))
    return create_model("CompareSection", __base__=Section, **fields)


CompareSection = _compare_section()


def _model_section() -> type[Section]:
    """The keys of every family of networks. A key that is left out is null, and the family's default holds."""
    names = tuple(dict.fromkeys((*families(), *broken_families())))
    network = axis_of(Literal[names])
    description = f"The family of networks. `{names[0]}`, a stack of cells, where it is not given."
    fields: dict[str, Any] = {"network": (network, Field(default=(names[0],), description=description))}
    for family in families().values():
        for name, field in family.model_fields.items() if family.keys_in_case else ():
            kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
            shown: dict[str, Any] = {} if field.is_required() else {"default": field.default}
            described = Field(default=(None,), description=field.description, json_schema_extra=shown)
            fields.setdefault(name, (axis_of(kind), described))
    required = [name for name, field in Model.model_fields.items() if field.is_required()]
    either: dict[str, Any] = {"anyOf": [{"required": required}, {"required": ["network"]}]}
    config = ConfigDict(**{**Section.model_config, "json_schema_extra": either})
    base = type("ModelBase", (Section,), {"__module__": __name__, "model_config": config})
    return create_model("ModelSection", __base__=base, **fields)


ModelSection = _model_section()
SECTIONS: dict[str, type[Section]] = {
    "model": ModelSection,
    "workload": WorkloadSection,
    "strategy": StrategySection,
    "target": TargetSection,
}
"""The sections that make trials, in order."""
LEAVES: dict[str, str] = {leaf: name for name, section in SECTIONS.items() for leaf in section.model_fields}
"""Every leaf with its section. Leaf names are unique over the sections."""


def _pattern_fields() -> dict[str, Any]:
    """Every leaf, not required, with a value or a list of values."""
    fields = {leaf: SECTIONS[section].model_fields[leaf] for leaf, section in LEAVES.items()}
    return {
        leaf: (axis_of(get_args(field.annotation)[0]), Field(default_factory=tuple, description=field.description))
        for leaf, field in fields.items()
    }


class _Pattern(Section):
    """Points of the matrix, by leaf names without their sections. `model_fields_set` has those that were written."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})


Pattern = create_model(
    "Pattern", __base__=_Pattern, __doc__="Values of keys, without their sections.", **_pattern_fields()
)


class MatrixSection(Section):
    exclude: Annotated[list[Pattern], Field(max_length=MAX_PATTERNS)] = Field(  # type: ignore[valid-type]
        default=[],
        description="Each entry drops the points that have, for each of its keys, that value or one of those values.",
    )
    include: Annotated[list[Pattern], Field(max_length=MAX_PATTERNS)] = Field(  # type: ignore[valid-type]
        default=[],
        description="Each entry adds the product of its values, whatever `exclude` says. Keys that are axes must be "
        "given; others are the case's.",
    )


class CaseFile(Section):
    """A case file of rnnbench."""

    schema_: Annotated[int, Field(ge=1, le=1), WithJsonSchema({"const": 1})] = Field(
        alias="schema", description="Version of this format."
    )
    name: Name = Field(description="First part of every trial's id.")
    description: Annotated[str, Field(max_length=1_000)] = Field(default="", description="What the case is for.")
    model: ModelSection = Field(description="What is computed.")  # type: ignore[valid-type]
    workload: WorkloadSection = Field(description="How much of it, in which pieces.")
    strategy: StrategySection = Field(description="How time advances and who carries the state.")
    target: TargetSection = Field(default=TargetSection(), description="What it runs on.")
    matrix: MatrixSection = Field(
        default=MatrixSection(), description="Points dropped from the product of the axes or added."
    )
    limits: LimitsSection = Field(default=LimitsSection(), description="What one trial may take.")
    measure: MeasureSection = Field(default=MeasureSection(), description="How one trial is sampled.")  # type: ignore[valid-type]
    compare: CompareSection = Field(  # type: ignore[valid-type]
        default=CompareSection(), description="The smallest changes that matter where two runs are compared."
    )

    pinned: Pinned = Field(
        default={},
        description="Makes the trials anchors: the targets that they run on, and the versions of each one's own "
        "environment.",
    )

    def axes(self) -> Axes:
        """Every leaf with its values, in the order of the sections."""
        values: dict[str, tuple[Value, ...]] = {}
        for section in SECTIONS:
            values.update(getattr(self, section).__dict__)
        return values


class Generator(TitleGenerator):
    """Generates the schema of case files."""

    def encode_default(self, dft: Any) -> Any:
        """A default axis of one value as that value."""
        return super().encode_default(dft[0] if isinstance(dft, tuple) and dft else dft)


@cache
def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of case files: for editors, and for the words of error messages.

    A key of a pattern is that of its section, so each key is described once.
    """
    schema = CaseFile.model_json_schema(schema_generator=Generator)
    schema["$defs"][Pattern.__name__]["properties"] = {
        leaf: {"$ref": f"#/$defs/{SECTIONS[section].__name__}/properties/{leaf}"} for leaf, section in LEAVES.items()
    }
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema}

"""LLVM IR of the roof's probes: a reader of a buffer, and a loop of fused multiply-adds that uses no memory.

Vectors are explicit, so that the result does not depend on an optimiser. They have 64 bytes; LLVM splits them for a
processor with narrower registers.
"""

from __future__ import annotations

from collections.abc import Iterable

VECTOR_BYTES = 64
READER = "read"
MULTIPLIER = "multiply"
_LLVM = {"float32": ("float", "f32", 4), "float64": ("double", "f64", 8)}
DTYPES = tuple(_LLVM)
"""Types whose rate of multiply-adds can be measured."""


def reader(accumulators: int, to_and_fro: bool) -> str:
    """`void read(ptr data, i64 groups, i64 passes, ptr sums)`: reads `groups` × `accumulators` vectors, `passes` times.

    Passes read forwards. With `to_and_fro` every second pass reads backwards, so that a cache that is too small for the
    buffer still has the end of the previous pass.
    """
    step = accumulators * VECTOR_BYTES
    vector = f"<{VECTOR_BYTES // 4} x float>"
    numbers = range(accumulators)
    return _lines(
        f"define void @{READER}(ptr %data, i64 %groups, i64 %passes, ptr %sums) {{",
        "entry:",
        "  br label %pass",
        "pass:",
        "  %turn = phi i64 [0, %entry], [%next_turn, %end]",
        *(f"  %held{i} = phi {vector} [zeroinitializer, %entry], [%sum{i}, %end]" for i in numbers),
        f"  %low = and i64 %turn, {int(to_and_fro)}",
        "  %back = icmp ne i64 %low, 0",
        "  %last = sub i64 %groups, 1",
        "  %first = select i1 %back, i64 %last, i64 0",
        f"  %start = mul i64 %first, {step}",
        f"  %stride = select i1 %back, i64 -{step}, i64 {step}",
        "  br label %group",
        "group:",
        "  %count = phi i64 [0, %pass], [%next_count, %group]",
        "  %at = phi i64 [%start, %pass], [%next_at, %group]",
        *(f"  %so_far{i} = phi {vector} [%held{i}, %pass], [%sum{i}, %group]" for i in numbers),
        *(line for i in numbers for line in _load_and_add(i, vector)),
        "  %next_count = add i64 %count, 1",
        "  %next_at = add i64 %at, %stride",
        "  %more = icmp ult i64 %next_count, %groups",
        "  br i1 %more, label %group, label %end",
        "end:",
        "  %next_turn = add i64 %turn, 1",
        "  %again = icmp ult i64 %next_turn, %passes",
        "  br i1 %again, label %pass, label %done",
        "done:",
        *_store(numbers, vector, "sum", "sums"),
        "  ret void",
        "}",
    )


def multiplier(dtype: str, accumulators: int) -> str:
    """`void multiply(i64 turns, ptr values)`: each turn does `accumulators` fused multiply-adds of one vector each."""
    scalar, suffix, size = _LLVM[dtype]
    lanes = VECTOR_BYTES // size
    vector = f"<{lanes} x {scalar}>"
    fma = f"@llvm.fma.v{lanes}{suffix}"
    numbers = range(accumulators)
    return _lines(
        f"declare {vector} {fma}({vector}, {vector}, {vector})",
        f"define void @{MULTIPLIER}(i64 %turns, ptr %values) {{",
        "entry:",
        f"  %value = load {vector}, ptr %values, align {VECTOR_BYTES}",
        "  br label %turn",
        "turn:",
        "  %count = phi i64 [0, %entry], [%next_count, %turn]",
        *(f"  %so_far{i} = phi {vector} [%value, %entry], [%sum{i}, %turn]" for i in numbers),
        *(f"  %sum{i} = call {vector} {fma}({vector} %so_far{i}, {vector} %value, {vector} %value)" for i in numbers),
        "  %next_count = add i64 %count, 1",
        "  %more = icmp ult i64 %next_count, %turns",
        "  br i1 %more, label %turn, label %done",
        "done:",
        *_store(numbers, vector, "sum", "values"),
        "  ret void",
        "}",
    )


def _load_and_add(index: int, vector: str) -> tuple[str, ...]:
    return (
        f"  %offset{index} = add i64 %at, {index * VECTOR_BYTES}",
        f"  %place{index} = getelementptr i8, ptr %data, i64 %offset{index}",
        f"  %loaded{index} = load {vector}, ptr %place{index}, align {VECTOR_BYTES}",
        f"  %sum{index} = fadd {vector} %so_far{index}, %loaded{index}",
    )


def _store(each: Iterable[int], vector: str, value: str, pointer: str) -> Iterable[str]:
    """Store the results. Otherwise the compiler would remove the computation."""
    for i in each:
        yield f"  %slot{i} = getelementptr i8, ptr %{pointer}, i64 {i * VECTOR_BYTES}"
        yield f"  store {vector} %{value}{i}, ptr %slot{i}, align {VECTOR_BYTES}"


def _lines(*lines: str) -> str:
    return "\n".join(lines)

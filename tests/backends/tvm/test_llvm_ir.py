"""Reading LLVM IR: which copies of the step are in a loop."""

from __future__ import annotations

import pytest

from rnnbench.backends.tvm.llvm_ir import lowered, operations

MARK = "  tail call void @llvm.sideeffect() #1"


def function(*lines: str) -> str:
    return "\n".join(["define internal i32 @main() {", "entry:", *lines, "  ret i32 0", "}"])


@pytest.mark.parametrize(
    ("ir", "expected"),
    [
        (function(MARK, MARK), "unrolled 2"),
        (function("  br label %time", "time:", MARK, "  br i1 %more, label %time, label %end", "end:"), "looped 1"),
        (
            function("  br label %time", "time:", MARK, MARK, "  br i1 %more, label %time, label %end", "end:", MARK),
            "looped 1 of 2 + unrolled 1",
        ),
        (
            function(
                *("  br label %a", "a:", MARK, "  br i1 %p, label %a, label %b"),
                *("b:", MARK, "  br label %k", "k:", "  br i1 %q, label %k, label %c", "c:"),
                "  br i1 %r, label %b, label %end",
                "end:",
            ),
            "looped 2",
        ),
        (function("  br label %k", "k:", "  br i1 %q, label %k, label %end", "end:", MARK), "unrolled 1"),
    ],
    ids=["straight", "loop", "mixture", "two loops", "a loop beside the step"],
)
def test_copies_are_where_their_marks_are(ir: str, expected: str) -> None:
    assert lowered(ir) == expected


def test_operations_are_counted_by_kind_and_marks_are_not() -> None:
    ir = function(
        MARK,
        "  %1 = fdiv <16 x float> %a, %b",
        "  %2 = tail call <16 x float> @llvm.fmuladd.v16f32(<16 x float> %a, <16 x float> %b, <16 x float> %1)",
    )
    assert operations(ir) == {"fdiv": 1, "llvm.fmuladd": 1, "ret": 1}

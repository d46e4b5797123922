"""The programs that measure an NVIDIA GPU's roof, in PTX, which the driver compiles for the GPU.

Source: Parallel Thread Execution ISA, docs.nvidia.com/cuda/parallel-thread-execution.
"""

from __future__ import annotations

READER, MULTIPLIER, NOTHING = "read_vectors", "multiply_add", "do_nothing"
VECTOR_BYTES = 16
"""Bytes that a thread reads at once."""
READS = 8
"""Vectors that a thread reads in one turn of its loop. None waits for another."""
CHAINS = 8
"""Independent chains of multiply-adds of a thread."""
LINKS = 16
"""Multiply-adds of each chain in one turn."""
_HEAD = """\
.version 7.0
.target sm_75
.address_size 64
"""


def ptx() -> str:
    """A module with all three programs."""
    return _HEAD + _reader() + _multiplier() + f".visible .entry {NOTHING}() {{ ret; }}\n"


def _reader() -> str:
    """A kernel that reads `count` vectors, `step` vectors apart and cyclically. Their sum keeps the reads alive.

    Reads bypass the first-level cache (`.cg`), which is emptied before the next program.
    """
    loads = "".join(
        f"""
    mul.wide.u32 %address, %index, {VECTOR_BYTES};
    add.u64 %address, %address, %data;
    ld.global.cg.v4.u32 {{%a{4 * n}, %a{4 * n + 1}, %a{4 * n + 2}, %a{4 * n + 3}}}, [%address];
    add.u32 %index, %index, %step;
    setp.ge.u32 %over, %index, %count;
    @%over sub.u32 %index, %index, %count;"""
        for n in range(READS)
    )
    sums = "".join(f"\n    xor.b32 %s{n % 4}, %s{n % 4}, %a{n};" for n in range(4 * READS))
    return f"""
.visible .entry {READER}(.param .u64 p_data, .param .u64 p_sums, .param .u32 p_count, .param .u32 p_step,
    .param .u32 p_turns)
{{
    .reg .u64 %address, %data, %sums;
    .reg .u32 %a<{4 * READS}>, %s<4>, %thread, %block, %width, %index, %count, %step, %turns;
    .reg .pred %over;
    ld.param.u64 %data, [p_data];
    ld.param.u64 %sums, [p_sums];
    ld.param.u32 %count, [p_count];
    ld.param.u32 %step, [p_step];
    ld.param.u32 %turns, [p_turns];
{_THREAD}
    rem.u32 %index, %thread, %count;
    mov.u32 %s0, 0;
    mov.u32 %s1, 0;
    mov.u32 %s2, 0;
    mov.u32 %s3, 0;
again:{loads}{sums}
    sub.u32 %turns, %turns, 1;
    setp.ne.u32 %over, %turns, 0;
    @%over bra again;
    xor.b32 %s0, %s0, %s1;
    xor.b32 %s2, %s2, %s3;
    xor.b32 %s0, %s0, %s2;
    mul.wide.u32 %address, %thread, 4;
    add.u64 %address, %address, %sums;
    st.global.u32 [%address], %s0;
    ret;
}}
"""


def _multiplier() -> str:
    """A kernel of float32 multiply-adds in chains. Their sum keeps them alive."""
    starts = "".join(f"\n    add.f32 %c{n}, %value, 0f{0x3F800000 + n:08X};" for n in range(CHAINS))
    links = "".join(f"\n    fma.rn.f32 %c{n}, %c{n}, %value, %value;" for _ in range(LINKS) for n in range(CHAINS))
    sums = "".join(f"\n    add.f32 %c0, %c0, %c{n};" for n in range(1, CHAINS))
    return f"""
.visible .entry {MULTIPLIER}(.param .u64 p_sums, .param .f32 p_value, .param .u32 p_turns)
{{
    .reg .u64 %address, %sums;
    .reg .u32 %thread, %block, %width, %turns;
    .reg .f32 %c<{CHAINS}>, %value;
    .reg .pred %over;
    ld.param.u64 %sums, [p_sums];
    ld.param.f32 %value, [p_value];
    ld.param.u32 %turns, [p_turns];
{_THREAD}{starts}
again:{links}
    sub.u32 %turns, %turns, 1;
    setp.ne.u32 %over, %turns, 0;
    @%over bra again;{sums}
    mul.wide.u32 %address, %thread, 4;
    add.u64 %address, %address, %sums;
    st.global.f32 [%address], %c0;
    ret;
}}
"""


_THREAD = """\
    mov.u32 %thread, %tid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %width, %ntid.x;
    mad.lo.u32 %thread, %block, %width, %thread;"""

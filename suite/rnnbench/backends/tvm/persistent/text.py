"""The parts of the persistent kernel that every model has, in CUDA C++. `source` joins them with the others."""

from __future__ import annotations

ATOMICS = """
#ifndef ADD_RELEASE
__device__ __forceinline__ unsigned add_release(unsigned* at, unsigned value) {
  unsigned before;
  asm volatile("atom.add.release.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(value) : "memory");
  return before;
}
__device__ __forceinline__ unsigned load_acquire(const unsigned* at) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}
#define ADD_RELEASE add_release
#define LOAD_ACQUIRE load_acquire
#endif
"""

PRODUCT = """
// A block's rows of a matrix, times vectors in shared memory. `Registers` and `Shared`: rows of a warp that are held.
template <int Rows, int Columns, int Registers, int Shared>
struct Product {
  static constexpr int ROWS = Rows, COLUMNS = Columns, REGISTERS = Registers, SHARED = Shared;
  static constexpr int ROWS_PER_WARP = (ROWS + WARPS - 1) / WARPS;
  static constexpr int VECTORS = (COLUMNS + 3) / 4;
  static constexpr int TURNS = (VECTORS + 31) / 32;
  static constexpr int FLOATS = 4 * SHARED * WARPS * VECTORS;  // of shared memory
  float4 held[REGISTERS > 0 ? REGISTERS : 1][TURNS];
  const float4* matrix;
  float4* shared;

  __device__ __forceinline__ Product(const float* weights, float* memory)
      : matrix(reinterpret_cast<const float4*>(weights) + (size_t)blockIdx.x * ROWS * VECTORS),
        shared(reinterpret_cast<float4*>(memory)) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < REGISTERS; ++n)
#pragma unroll
      for (int turn = 0; turn < TURNS; ++turn) held[n][turn] = from_memory(warp + n * WARPS, lane + turn * 32);
    for (int n = 0; n < SHARED; ++n)
      for (int at = lane; at < VECTORS; at += 32)
        shared[(n * WARPS + warp) * VECTORS + at] = from_memory(warp + (REGISTERS + n) * WARPS, at);
  }

  __device__ __forceinline__ float4 from_memory(int row, int at) const {
    return row < ROWS && at < VECTORS ? __ldg(matrix + (size_t)row * VECTORS + at) : make_float4(0.f, 0.f, 0.f, 0.f);
  }

  __device__ __forceinline__ float4 weight(int n, int turn, int at) const {
    const int warp = threadIdx.x / 32;
    if (n < REGISTERS) return held[n][turn];
    if (n < REGISTERS + SHARED)
      return at < VECTORS ? shared[((n - REGISTERS) * WARPS + warp) * VECTORS + at] : make_float4(0.f, 0.f, 0.f, 0.f);
    return from_memory(warp + n * WARPS, at);
  }

  // sums[vector][row] = bias[row] + matrix[row] . staged[vector]
  __device__ __forceinline__ void multiply(const float* staged, int count, const float* bias, float* sums) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float4* vectors = reinterpret_cast<const float4*>(staged);
    for (int vector = 0; vector < count; ++vector, vectors += VECTORS, sums += ROWS) {
      float total[ROWS_PER_WARP] = {};
#pragma unroll(REGISTERS > 0 ? TURNS : 1)
      for (int turn = 0; turn < TURNS; ++turn) {
        const int at = lane + turn * 32;
        const float4 x = at < VECTORS ? vectors[at] : make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
        for (int n = 0; n < ROWS_PER_WARP; ++n) {
          const float4 w = weight(n, turn, at);
          total[n] = fmaf(w.x, x.x, fmaf(w.y, x.y, fmaf(w.z, x.z, fmaf(w.w, x.w, total[n]))));
        }
      }
#pragma unroll
      for (int n = 0; n < ROWS_PER_WARP; ++n) {
        for (int other = 16; other > 0; other /= 2) total[n] += __shfl_xor_sync(0xffffffffu, total[n], other);
        const int row = warp + n * WARPS;
        if (lane == 0 && row < ROWS) sums[row] = total[n] + (bias ? __ldg(bias + row) : 0.0f);
      }
    }
  }
};
"""

HELPERS = """
// Rows of memory to rows of whole vectors in shared memory, past the first-level cache: other blocks wrote them.
// Where there is no memory, zeros.
template <int COLUMNS>
__device__ __forceinline__ void stage(float* staged, const float* rows, int stride, int count) {
  constexpr int PADDED = (COLUMNS + 3) / 4 * 4;
  for (int at = threadIdx.x; at < count * PADDED; at += THREADS) {
    const int row = at / PADDED, column = at % PADDED;
    staged[at] = rows && column < COLUMNS ? __ldcg(rows + (size_t)row * stride + column) : 0.0f;
  }
}

// Returns when every block has come here. The highest bit of the counter changes with the last one. So the counter
// needs no reset, from step to step and from call to call.
__device__ __forceinline__ void grid_barrier(unsigned* counter) {
  __syncthreads();
  if (BLOCKS > 1 && threadIdx.x == 0) {
    const unsigned before = ADD_RELEASE(counter, blockIdx.x == 0 ? 0x80000000u - (BLOCKS - 1) : 1u);
    while (((before ^ LOAD_ACQUIRE(counter)) & 0x80000000u) == 0) {
    }
  }
  __syncthreads();
}

struct Layer {
  const float *w_ih, *w_hh, *w_second, *b_x, *b_h;  // w_second, b_x and b_h may be null
  const float* input;
  const float *h_before, *c_before;  // null: zeros
  float *h_after, *c_after;          // h_after may be null; c_after is also where c is between steps
  float* out;
};
"""

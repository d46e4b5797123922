"""The parts of the persistent kernel that are the same for every model, in CUDA C++. `source` joins them."""

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
// A block's rows of a matrix, times vectors in shared memory.
template <int COLUMNS, int REGISTERS, int SHARED>
struct Product {
  static constexpr int VECTORS = (COLUMNS + 3) / 4;
  static constexpr int TURNS = (VECTORS + 31) / 32;
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
  const float *w_ih, *w_hh, *b_x, *b_h;  // b_x and b_h may be null
  const float* input;
  const float *h_before, *c_before;  // null: zeros
  float *h_after, *c_after;          // h_after may be null; c_after is also where c is between steps
  float* out;
};
"""

CELLS = {
    "lstm": """
    const float i = gate(clipped(z[0 * UNITS] + p[0 * UNITS]));
    const float f = gate(clipped(z[1 * UNITS] + p[1 * UNITS]));
    const float g = activated(clipped(z[2 * UNITS] + p[2 * UNITS]));
    const float o = gate(clipped(z[3 * UNITS] + p[3 * UNITS]));
    const float* before = step == 0 ? layer.c_before : layer.c_after;
    const float c = clipped_cell(f * (before ? before[of_unit] : 0.0f) + i * g);
    layer.c_after[of_unit] = c;
    const float h = o * activated(c);
""",
    "gru": """
    const float r = gate(clipped(z[0 * UNITS] + p[0 * UNITS]));
    const float u = gate(clipped(z[1 * UNITS] + p[1 * UNITS]));
    const float n = activated(clipped(p[2 * UNITS] + r * z[2 * UNITS]));
    const float h = n + u * (staged[vector * ((HIDDEN + 3) / 4 * 4) + unit] - n);
""",
    "rnn": """
    const float h = activated(clipped(z[0] + p[0]));
""",
}

STEPS = """
// The h of the last step, of the block's own units. Where a batch is not cut, they are the thread's own.
__device__ __forceinline__ void keep(const Layer& layer) {
  const float* last = layer.out + (size_t)(CHUNK - 1) * BATCH * WIDTH;
  for (int at = threadIdx.x; at < BATCH * UNITS; at += THREADS) {
    const int vector = at / UNITS, unit = blockIdx.x * UNITS + at % UNITS;
    if (unit < HIDDEN) layer.h_after[vector * HIDDEN + unit] = last[vector * WIDTH + unit];
  }
}

// One layer in one direction over the whole chunk. `LAST`: no barrier after the last step.
template <int COLUMNS, int X_REGISTERS, int X_SHARED, int H_REGISTERS, int H_SHARED, bool BACKWARD, bool LAST>
__device__ __forceinline__ void run_layer(const Layer& layer, float* projections, unsigned* counter, float* shared) {
  float *staged = shared, *sums = shared + STAGED, *held = shared + STAGED + SUMS;
  float* projected = projections + (size_t)blockIdx.x * CHUNK * BATCH * ROWS;
  __syncthreads();  // the layer before may still use the shared memory
  {
    const Product<COLUMNS, X_REGISTERS, X_SHARED> product(layer.w_ih, held);
    const float* bias = layer.b_x ? layer.b_x + blockIdx.x * ROWS : nullptr;
#pragma unroll 1
    for (int first = 0; first < CHUNK * BATCH; first += TILE) {
      const int count = CHUNK * BATCH - first < TILE ? CHUNK * BATCH - first : TILE;
      stage<COLUMNS>(staged, layer.input + (size_t)first * COLUMNS, COLUMNS, count);
      __syncthreads();
      product.multiply(staged, count, bias, projected + (size_t)first * ROWS);
      __syncthreads();
    }
  }
  const Product<HIDDEN, H_REGISTERS, H_SHARED> product(layer.w_hh, held);
  const float* bias = layer.b_h ? layer.b_h + blockIdx.x * ROWS : nullptr;
#pragma unroll 1
  for (int step = 0; step < CHUNK; ++step) {
    const int time = BACKWARD ? CHUNK - 1 - step : step, earlier = BACKWARD ? time + 1 : time - 1;
    const float* before = step == 0 ? layer.h_before : layer.out + (size_t)earlier * BATCH * WIDTH;
    const int stride = step == 0 ? HIDDEN : WIDTH;
    float* out = layer.out + (size_t)time * BATCH * WIDTH;
#pragma unroll 1
    for (int first = 0; first < BATCH; first += TILE) {
      const int count = BATCH - first < TILE ? BATCH - first : TILE;
      stage<HIDDEN>(staged, before ? before + (size_t)first * stride : nullptr, stride, count);
      __syncthreads();
      product.multiply(staged, count, bias, sums);
      __syncthreads();
      cells(layer, step, first, count, projected + (size_t)time * BATCH * ROWS, staged, sums, out);
      // The next copy of h overwrites what a GRU's units read, and `keep` reads what other threads wrote.
      if (TILE < BATCH) __syncthreads();
    }
    if (!LAST || step < CHUNK - 1) grid_barrier(counter);
  }
  if (layer.h_after) keep(layer);
}
"""

"""One layer in one direction over a whole chunk, in CUDA C++: the projection of x, and the loop over the steps."""

from __future__ import annotations

from rnnbench.backends.tvm.persistent.layout import Plan, has_two_products

_KEEP = """
// The h of the last step, of the block's own units. Where a batch is not cut, they are the thread's own.
__device__ __forceinline__ void keep(const Layer& layer) {
  const float* last = layer.out + (size_t)(CHUNK - 1) * BATCH * WIDTH;
  for (int at = threadIdx.x; at < BATCH * OUTPUT_UNITS; at += THREADS) {
    const int vector = at / OUTPUT_UNITS, unit = blockIdx.x * OUTPUT_UNITS + at % OUTPUT_UNITS;
    if (unit < OUTPUT) layer.h_after[vector * OUTPUT + unit] = last[vector * WIDTH + unit];
  }
}
"""

_PROJECTION = """
// One layer in one direction over the whole chunk. `LAST`: no barrier after the last step.
template <typename OfX, bool BACKWARD, bool LAST>
__device__ __forceinline__ void run_layer(const Layer& layer, float* projections, float* exchanged, unsigned* counter,
                                          float* shared) {
  float *staged = shared, *sums = shared + STAGED, *held = shared + STAGED + SUMS;
  float* projected = projections + (size_t)blockIdx.x * CHUNK * BATCH * PROJECTED;
  __syncthreads();  // the layer before may still use the shared memory
  {
    const OfX product(layer.w_ih, held);
    const float* bias = layer.b_x ? layer.b_x + blockIdx.x * PROJECTED : nullptr;
#pragma unroll 1
    for (int first = 0; first < CHUNK * BATCH; first += TILE) {
      const int count = CHUNK * BATCH - first < TILE ? CHUNK * BATCH - first : TILE;
      stage<OfX::COLUMNS>(staged, layer.input + (size_t)first * OfX::COLUMNS, OfX::COLUMNS, count);
      __syncthreads();
      product.multiply(staged, count, bias, projected + (size_t)first * PROJECTED);
      __syncthreads();
    }
  }
"""

_HELD = """\
  const First first_product(layer.w_hh, held);
"""
_SECOND_HELD = """\
  const Second second_product(layer.w_second, held + First::FLOATS);
"""

_LOOP = """\
  const float* bias = layer.b_h ? layer.b_h + blockIdx.x * PROJECTED : nullptr;
#pragma unroll 1
  for (int step = 0; step < CHUNK; ++step) {
    const int time = BACKWARD ? CHUNK - 1 - step : step, earlier = BACKWARD ? time + 1 : time - 1;
    const float* before = step == 0 ? layer.h_before : layer.out + (size_t)earlier * BATCH * WIDTH;
    const int stride = step == 0 ? OUTPUT : WIDTH;
    float* of_step = projected + (size_t)time * BATCH * PROJECTED;
    float* out = layer.out + (size_t)time * BATCH * WIDTH;
    float* results = PRODUCTS == 1 ? out : exchanged;
#pragma unroll 1
    for (int first = 0; first < BATCH; first += TILE) {
      const int count = BATCH - first < TILE ? BATCH - first : TILE;
      stage<First::COLUMNS>(staged, before ? before + (size_t)first * stride : nullptr, stride, count);
      __syncthreads();
      first_product.multiply(staged, count, bias, sums);
      __syncthreads();
      after_first(layer, step, first, count, of_step, staged, sums, results);
      // The next copy of h overwrites what a GRU's units read, and `keep` reads what other threads wrote.
      if (TILE < BATCH) __syncthreads();
    }
"""

_SECOND = """\
    // Behind it, all of the exchanged vector is there. It is written anew behind the barrier that ends the step.
    grid_barrier(counter);
#pragma unroll 1
    for (int first = 0; first < BATCH; first += TILE) {
      const int count = BATCH - first < TILE ? BATCH - first : TILE;
      stage<Second::COLUMNS>(staged, exchanged + (size_t)first * HIDDEN, HIDDEN, count);
      __syncthreads();
      second_product.multiply(staged, count, nullptr, sums);
      __syncthreads();
      after_second(layer, step, first, count, of_step, staged, sums, out);
      if (TILE < BATCH) __syncthreads();  // before `keep` reads what other threads wrote
    }
"""

_END = """\
    if (!LAST || step < CHUNK - 1) grid_barrier(counter);
  }
  if (layer.h_after) keep(layer);
}
"""


def steps(plan: Plan) -> str:
    """The function `run_layer`, with the products that a step of the plan has."""
    if has_two_products(plan.model):
        return "".join((_KEEP, _PROJECTION, _HELD, _SECOND_HELD, _LOOP, _SECOND, _END))
    return "".join((_KEEP, _PROJECTION, _HELD, _LOOP, _END))

// Test code. A GPU that the processor emulates: it runs CUDA C++ source as it is, to see that its numbers are right.
//
// Each thread of the grid is a fiber with a stack of its own, and all of them take turns on one thread of the host. A
// fiber runs until it has to wait: for its block (__syncthreads), for its warp (a shuffle), or for a counter in memory.
// A block runs until all of its threads wait, and then the next one does. So a block that does not wait where it has to
// runs ahead of all others, each time in the same way, and reads what they have not written yet: NaN. What it does not
// show: the order in which a real GPU's memory makes writes visible, and any time.
//
// This is what the source sees, and `cuda_on_processor.cpp` is the rest: it is compiled once for all sources.
#include <cmath>
#include <cstddef>

#define __device__
#define __forceinline__ inline

struct float4 { float x, y, z, w; };
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct Index { unsigned x; };

namespace processor {

struct Place { Index thread, block; };
extern Place* place;  // of the thread that runs

void call(float** arrays, float* shared);  // of the source that is tested

}  // namespace processor

#define threadIdx (processor::place->thread)
#define blockIdx (processor::place->block)

void __syncthreads();
float __shfl_xor_sync(unsigned, float value, int other);

template <typename T> T __ldg(const T* at) { return *at; }
template <typename T> T __ldcg(const T* at) { return *at; }

unsigned on_processor_add(unsigned* at, unsigned value);
unsigned on_processor_load(const unsigned* at);

#define ADD_RELEASE on_processor_add
#define LOAD_ACQUIRE on_processor_load

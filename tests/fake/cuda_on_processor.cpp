// Test code. The GPU that `cuda_on_processor.h` tells of: fibers, and the order in which they run.
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <vector>

#include "cuda_on_processor.h"

namespace processor {

constexpr size_t STACK = 96 << 10;
constexpr int GUARD = 64;  // floats after the shared memory of a block
constexpr unsigned UNTOUCHED = 0x7fc0dead;  // a NaN

struct Meeting {  // a barrier of some fibers: the last one to come changes `turn`
  unsigned expected = 0, come = 0, turn = 0;
};

struct Warp { Meeting meeting; float values[2][32]; unsigned shuffles[32] = {}; };

struct Block {
  Meeting meeting;
  std::vector<Warp> warps;
  std::vector<float> shared;
};

struct Fiber : Place {
  Block* of;
  std::unique_ptr<char[]> stack;
  ucontext_t start;
  jmp_buf here;
  bool started = false, done = false;
  const unsigned* waits_for = nullptr;  // runs on once this is not `seen` any more
  unsigned seen = 0;
  const unsigned* loaded = nullptr;  // the counter that it read last, and what it was
  unsigned was = 0;
};

Place* place;

namespace {

Fiber* current;
jmp_buf scheduler;
float** arrays;
long arrivals;

void wait(const unsigned* at, unsigned seen) {
  current->waits_for = at;
  current->seen = seen;
  if (_setjmp(current->here) == 0) _longjmp(scheduler, 1);
}

void meet(Meeting& meeting) {
  if (++meeting.come == meeting.expected) {
    meeting.come = 0;
    ++meeting.turn;
  } else {
    wait(&meeting.turn, meeting.turn);
  }
}

void body() {
  call(arrays, current->of->shared.data());
  current->done = true;
  _longjmp(scheduler, 1);
}

bool can_run(const Fiber& fiber) {
  return !fiber.done && (fiber.waits_for == nullptr || *fiber.waits_for != fiber.seen);
}

void resume(Fiber& fiber) {
  place = current = &fiber;
  fiber.waits_for = nullptr;
  if (_setjmp(scheduler) != 0) return;
  if (fiber.started) _longjmp(fiber.here, 1);
  fiber.started = true;
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = fiber.stack.get();
  fiber.start.uc_stack.ss_size = STACK;
  makecontext(&fiber.start, body, 0);
  setcontext(&fiber.start);
}

// Every thread of a block, until all of them wait or have ended. Whether any ran.
bool run_block(std::vector<Fiber>& fibers, bool backwards) {
  const size_t count = fibers.size();
  bool ran = false;
  for (bool again = true; again; ran = ran || again) {
    again = false;
    for (size_t n = 0; n < count; ++n) {
      Fiber& fiber = fibers[backwards ? count - 1 - n : n];
      if (can_run(fiber)) resume(fiber), again = true;
    }
  }
  return ran;
}

}  // namespace
}  // namespace processor

void __syncthreads() { processor::meet(processor::current->of->meeting); }

float __shfl_xor_sync(unsigned, float value, int other) {
  processor::Warp& warp = processor::current->of->warps[threadIdx.x / 32];
  const int lane = threadIdx.x % 32;
  float* values = warp.values[warp.shuffles[lane]++ % 2];
  values[lane] = value;
  processor::meet(warp.meeting);
  return values[lane ^ other];
}

unsigned on_processor_add(unsigned* at, unsigned value) {
  ++processor::arrivals;
  const unsigned before = *at;
  *at += value;
  processor::current->loaded = nullptr;
  return before;
}

// A second load of the same counter waits until it has changed: whoever asks again is not content with what it was.
unsigned on_processor_load(const unsigned* at) {
  processor::Fiber& fiber = *processor::current;
  if (fiber.loaded == at && *at == fiber.was) processor::wait(at, fiber.was);
  fiber.loaded = at;
  return fiber.was = *at;
}

// Runs the grid. 0: done; 1: threads wait for each other for ever; 2: something wrote beyond the shared memory.
// `order`: 0 runs blocks and their threads from the first to the last, 1 the other way round.
extern "C" int run_grid(float** arrays, int blocks, int threads, int shared, int order, long* arrivals) {
  using namespace processor;
  processor::arrays = arrays;
  processor::arrivals = 0;
  float untouched;
  std::memcpy(&untouched, &UNTOUCHED, sizeof untouched);
  std::vector<Block> grid(blocks);
  std::vector<std::vector<Fiber>> fibers(blocks);
  for (int b = 0; b < blocks; ++b) {
    grid[b].meeting.expected = threads;
    grid[b].warps.resize(threads / 32);
    for (Warp& warp : grid[b].warps) warp.meeting.expected = 32;
    grid[b].shared.assign(shared + GUARD, untouched);
    fibers[b] = std::vector<Fiber>(threads);
    for (int t = 0; t < threads; ++t) {
      fibers[b][t].thread.x = t;
      fibers[b][t].block.x = b;
      fibers[b][t].of = &grid[b];
      fibers[b][t].stack.reset(new char[STACK]);
    }
  }
  for (bool ran = true; ran;) {
    ran = false;
    for (int b = 0; b < blocks; ++b) ran = run_block(fibers[order ? blocks - 1 - b : b], order) || ran;
  }
  *arrivals = processor::arrivals;
  for (const auto& of_block : fibers)
    for (const Fiber& fiber : of_block)
      if (!fiber.done) return 1;
  for (const Block& block : grid)
    for (int at = shared; at < shared + GUARD; ++at)
      if (std::memcmp(&block.shared[at], &UNTOUCHED, sizeof UNTOUCHED) != 0) return 2;
  return 0;
}

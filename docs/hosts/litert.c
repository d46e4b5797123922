/* LiteRT: a stream is a compiled model of its own. The state is in its resource variables, which start at zero. */
#include <stdlib.h>
#include <string.h>
#include <litert.h>
#include "host.h"

struct program {
  LiteRtEnvironment environment;
  LiteRtModel model;
  LiteRtOptions options;
  size_t step; /* the signature of that name; the others read and write the state */
  int input, hidden;
};

struct stream {
  struct program *program;
  LiteRtCompiledModel compiled;
  float *x, *y;
  LiteRtTensorBuffer input, output;
};

/* The library does not export its texts of errors, so the message has the call. */
#define check(call) \
  if ((call) != kLiteRtStatusOk) fail("failed: " #call)

static size_t find_signature(LiteRtModel model, const char *wanted) {
  LiteRtSignature signature;
  const char *key;
  for (size_t index = 0;; index++) {
    check(LiteRtGetModelSignature(model, index, &signature));
    check(LiteRtGetSignatureKey(signature, &key));
    if (!strcmp(key, wanted)) return index;
  }
}

void *load(const char *artifact, int input, int hidden) {
  struct program *program = malloc(sizeof *program);
  *program = (struct program){.input = input, .hidden = hidden};
  check(LiteRtCreateEnvironment(0, NULL, &program->environment));
  check(LiteRtCreateModelFromFile(program->environment, artifact, &program->model));
  program->step = find_signature(program->model, "step");
  check(LiteRtCreateOptions(&program->options));
  check(LiteRtSetOptionsHardwareAccelerators(program->options, kLiteRtHwAcceleratorCpu));
  return program;
}

/* Memory of 1 × 1 × size numbers that the model reads or writes. */
static float *zeros(int size, LiteRtTensorBuffer *buffer) {
  size_t alignment = LITERT_HOST_MEMORY_BUFFER_ALIGNMENT, nbytes = size * sizeof(float);
  float *data = aligned_alloc(alignment, (nbytes + alignment - 1) / alignment * alignment);
  LiteRtRankedTensorType type = {kLiteRtElementTypeFloat32, {.rank = 3, .dimensions = {1, 1, size}}};
  memset(data, 0, nbytes);
  check(LiteRtCreateTensorBufferFromHostMemory(&type, data, nbytes, NULL, buffer));
  return data;
}

void *init(void *loaded) {
  struct program *program = loaded;
  struct stream *stream = malloc(sizeof *stream);
  stream->program = program;
  check(LiteRtCreateCompiledModel(program->environment, program->model, program->options, &stream->compiled));
  stream->x = zeros(program->input, &stream->input);
  stream->y = zeros(program->hidden, &stream->output);
  return stream;
}

void step(void *opened, const float *x, float *y) {
  struct stream *stream = opened;
  memcpy(stream->x, x, stream->program->input * sizeof *x);
  check(LiteRtRunCompiledModel(stream->compiled, stream->program->step, 1, &stream->input, 1, &stream->output));
  memcpy(y, stream->y, stream->program->hidden * sizeof *y);
}

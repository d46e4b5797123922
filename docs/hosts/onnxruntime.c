/* ONNX Runtime: the state has two sets of buffers, which change places. One binding reads the first set and writes the
   second, the other one does the reverse. So no step copies the state. */
#include <stdlib.h>
#include <string.h>
#include <onnxruntime_c_api.h>
#include "host.h"

static const OrtApi *ort;
static const char *const INPUTS[] = {"x", "h", "c"}, *const OUTPUTS[] = {"y", "next_h", "next_c"};

struct program {
  OrtSession *session;
  OrtMemoryInfo *memory;
  int input, hidden;
};

struct stream {
  struct program *program;
  float *x, *y;
  OrtIoBinding *bindings[2];
  int turn; /* which of them is next */
};

#define check(call) for (OrtStatus *status = (call); status;) fail(ort->GetErrorMessage(status))

void *load(const char *artifact, int input, int hidden) {
  OrtEnv *environment;
  OrtSessionOptions *options;
  struct program *program = malloc(sizeof *program);
  *program = (struct program){NULL, NULL, input, hidden};
  ort = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (!ort) fail("the library is older than its header");
  check(ort->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "host", &environment));
  check(ort->CreateSessionOptions(&options));
  check(ort->SetIntraOpNumThreads(options, 1));
  check(ort->SetInterOpNumThreads(options, 1));
  check(ort->SetSessionGraphOptimizationLevel(options, ORT_DISABLE_ALL)); /* the file is optimised */
  check(ort->CreateSession(environment, artifact, options, &program->session));
  check(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &program->memory));
  return program;
}

/* [1, size] zeros. */
static OrtValue *zeros(struct program *program, int size, float **data) {
  const int64_t shape[] = {1, size};
  OrtValue *value;
  *data = calloc(size, sizeof **data);
  check(ort->CreateTensorWithDataAsOrtValue(program->memory, *data, size * sizeof **data, shape, 2,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  return value;
}

void *init(void *loaded) {
  struct program *program = loaded;
  struct stream *stream = calloc(1, sizeof *stream);
  stream->program = program;
  float *unused;
  OrtValue *x = zeros(program, program->input, &stream->x), *y = zeros(program, program->hidden, &stream->y);
  OrtValue *state[2][2]; /* of each turn: h and c */
  for (int part = 0; part < 4; part++) state[part / 2][part % 2] = zeros(program, program->hidden, &unused);
  for (int turn = 0; turn < 2; turn++) {
    OrtValue **now = state[turn], **next = state[1 - turn];
    OrtValue *inputs[] = {x, now[0], now[1]}, *outputs[] = {y, next[0], next[1]};
    check(ort->CreateIoBinding(program->session, &stream->bindings[turn]));
    for (int name = 0; name < 3; name++) {
      check(ort->BindInput(stream->bindings[turn], INPUTS[name], inputs[name]));
      check(ort->BindOutput(stream->bindings[turn], OUTPUTS[name], outputs[name]));
    }
  }
  return stream;
}

void step(void *opened, const float *x, float *y) {
  struct stream *stream = opened;
  memcpy(stream->x, x, stream->program->input * sizeof *x);
  check(ort->RunWithBinding(stream->program->session, NULL, stream->bindings[stream->turn]));
  memcpy(y, stream->y, stream->program->hidden * sizeof *y);
  stream->turn = 1 - stream->turn;
}

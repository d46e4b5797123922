/* OpenVINO: a stream is an inference request. The state is in the request's variables, which start at zero. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openvino/c/openvino.h>
#include "host.h"

struct program {
  ov_compiled_model_t *model;
  int input, hidden;
};

struct stream {
  struct program *program;
  ov_infer_request_t *request;
  float *x, *y;
};

static void check(ov_status_e status) {
  if (status != OK) fail(ov_get_last_err_msg());
}

/* The bytes of a compiled model. They must exist as long as the model. */
static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) fail("the artifact cannot be read");
  fseek(file, 0, SEEK_END);
  *size = ftell(file);
  rewind(file);
  char *content = malloc(*size);
  if (fread(content, 1, *size, file) != *size) fail("the artifact cannot be read");
  fclose(file);
  return content;
}

void *load(const char *artifact, int input, int hidden) {
  struct program *program = malloc(sizeof *program);
  *program = (struct program){.input = input, .hidden = hidden};
  ov_core_t *core;
  size_t size;
  char *content = read_file(artifact, &size);
  check(ov_core_create(&core));
  check(ov_core_set_property(core, "CPU", "INFERENCE_NUM_THREADS", "1", "PERFORMANCE_HINT", "LATENCY", NULL));
  /* Without it, a processor that has bfloat16 computes in it. */
  check(ov_core_set_property(core, "CPU", "INFERENCE_PRECISION_HINT", "f32", NULL));
  check(ov_core_import_model(core, content, size, "CPU", &program->model));
  return program;
}

/* [1, size] zeros that the request reads or writes under a name. */
static float *zeros(ov_infer_request_t *request, const char *name, int size) {
  int64_t shape[] = {1, size};
  float *data = calloc(size, sizeof *data);
  ov_tensor_t *tensor;
  check(ov_tensor_create_from_host_ptr(F32, (ov_shape_t){2, shape}, data, &tensor));
  check(ov_infer_request_set_tensor(request, name, tensor));
  return data;
}

void *init(void *loaded) {
  struct stream *stream = malloc(sizeof *stream);
  stream->program = loaded;
  check(ov_compiled_model_create_infer_request(stream->program->model, &stream->request));
  stream->x = zeros(stream->request, "x", stream->program->input);
  stream->y = zeros(stream->request, "y", stream->program->hidden);
  return stream;
}

void step(void *opened, const float *x, float *y) {
  struct stream *stream = opened;
  memcpy(stream->x, x, stream->program->input * sizeof *x);
  check(ov_infer_request_infer(stream->request));
  memcpy(y, stream->y, stream->program->hidden * sizeof *y);
}

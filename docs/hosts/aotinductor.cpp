// AOTInductor: a stream is a loaded package of its own. The state is in two tensors that the package reads and writes.
// PyTorch's interface for hosts is C++.
#include <cstring>
#include <exception>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include "host.h"

struct Program {
  const char *package;
  int input, hidden;
};

struct Stream {
  Program *program;
  torch::inductor::AOTIModelPackageLoader package;
  std::vector<at::Tensor> arguments;
};

void *load(const char *artifact, int input, int hidden) { return new Program{artifact, input, hidden}; }

void *init(void *loaded) try {
  c10::InferenceMode guard;
  auto *program = static_cast<Program *>(loaded);
  auto *stream = new Stream{program, {program->package, "model", /*run_single_threaded=*/true}, {at::zeros({1, 1, program->input})}};
  std::unordered_map<std::string, at::Tensor> state;
  for (const char *name : {"h", "c"}) state[name] = at::zeros({1, 1, program->hidden});
  stream->package.load_constants(state, /*use_inactive=*/false, /*check_full_update=*/false, /*user_managed=*/true);
  return stream;
} catch (const std::exception &error) {
  fail(error.what());
  return nullptr;
}

void step(void *opened, const float *x, float *y) {
  c10::InferenceMode guard;
  auto *stream = static_cast<Stream *>(opened);
  std::memcpy(stream->arguments[0].data_ptr(), x, stream->program->input * sizeof *x);
  std::vector<at::Tensor> results = stream->package.run(stream->arguments);
  std::memcpy(y, results[0].const_data_ptr(), stream->program->hidden * sizeof *y);
}

// TVM: a stream is a virtual machine of its own over the library. `main` takes x and the tensors of the state, which it
// reads and writes. TVM's interface for hosts is C++; its kernels want every argument aligned to 64 bytes.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include "host.h"

using tvm::ffi::Any, tvm::ffi::Array, tvm::ffi::Function, tvm::ffi::Module, tvm::ffi::Tensor;

struct Aligned {
  void AllocData(DLTensor *tensor) {
    size_t nbytes = (tvm::ffi::GetDataSize(*tensor) + 63) / 64 * 64;
    tensor->data = std::memset(std::aligned_alloc(64, nbytes), 0, nbytes);
  }
  void FreeData(DLTensor *tensor) { std::free(tensor->data); }
};

struct Program {
  Module library;
  int input, hidden;
};

struct Stream {
  Program *program;
  Module machine;
  Tensor x;
  Function call;
};

static Tensor zeros(int size) {
  return Tensor::FromNDAlloc(Aligned(), {1, 1, size}, DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0});
}

void *load(const char *artifact, int input, int hidden) try {
  return new Program{Module::LoadFromFile(artifact), input, hidden};
} catch (const std::exception &error) {
  fail(error.what());
  return nullptr;
}

void *init(void *loaded) try {
  auto *program = static_cast<Program *>(loaded);
  auto machine = program->library->GetFunction("vm_load_executable").value()().cast<Module>();
  const int pooled = 2;
  machine->GetFunction("vm_initialization").value()(static_cast<int>(kDLCPU), 0, pooled);
  Tensor x = zeros(program->input), h = zeros(program->hidden), c = zeros(program->hidden);
  machine->GetFunction("save_function").value()("main", "step", true, x, Array<Any>{h, c}); // a call without arguments
  return new Stream{program, machine, x, machine->GetFunction("step").value()};
} catch (const std::exception &error) {
  fail(error.what());
  return nullptr;
}

void step(void *opened, const float *x, float *y) {
  auto *stream = static_cast<Stream *>(opened);
  std::memcpy(stream->x.data_ptr(), x, stream->program->input * sizeof *x);
  auto results = stream->call().cast<Array<Any>>();
  std::memcpy(y, results[0].cast<Tensor>().data_ptr(), stream->program->hidden * sizeof *y);
}

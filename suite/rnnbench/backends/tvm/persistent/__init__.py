"""Route `tir` on CUDA: one kernel that runs a whole call and holds the recurrent weights on the chip.

- `layout`: which block has which units, and which weights are held where. It imports no TVM.
- `source`: the kernel in CUDA C++, generated from the model's spec. `steps` has the loop over the steps, `cells` what a
  unit does in each, `text` what every kernel has.
- `kernel`: the kernel as TIR, and its compilation.
- `program`, `session`: a loaded kernel, and streams through it.

The source also runs on the processor, in tests: `tests/fake/cuda_on_processor.h` plays the GPU.
"""

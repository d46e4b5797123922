"""What a stream reads and writes: two sets of states, and for each chunk of a ring its x, its y and its bindings.

A CUDA graph has the addresses of its arrays. CUDA's provider keeps the graphs that it has recorded until its session
ends. So the places of a closed stream are kept for the next stream of the program, which replays the graphs that are
there. Otherwise each stream that comes and goes would take more memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnxruntime as ort

from rnnbench.backends.onnxruntime.buffers import Buffer
from rnnbench.backends.shared.onnx_graphs import NEXT

ByTurns = tuple[Any, Any]
"""What `run` takes in each of the two turns: a binding, and with launch `graph` beside it the number of its graph."""
Place = Callable[[str, np.ndarray], Buffer]
"""Makes a buffer for the array of this name, which begins with the values of an array of its own."""
MakeOptions = Callable[[], Any]
"""Makes the options of the calls of one binding; None where they have none."""
GRAPH = "gpu_graph_id"
NOT_SYNCHRONISED = "disable_synchronize_execution_providers"
"""Keys of ONNX Runtime's options of a call. Source: onnxruntime_run_options_config_keys.h"""


class Ring(NamedTuple):
    """The places of some chunks."""

    inputs: tuple[Mapping[str, Buffer], ...]
    """By chunk: x, and the lengths of its rows where the request is ragged."""
    y: Buffer
    bindings: tuple[ByTurns, ...]


class Places:
    """The places of one stream. A call reads one set of states and writes the other."""

    def __init__(self, place: Place, states: Mapping[str, np.ndarray], y: np.ndarray) -> None:
        """`states` are zeros, and so is `y`: an output of one call."""
        self._place = place
        self._zeros, self._zero_y = states, y
        self.state_sets = [{name: place(name, zeros.copy()) for name, zeros in states.items()} for _ in range(2)]
        self._rings: list[Ring] = []
        self._free: list[Ring] = []

    def begin_again(self) -> None:
        """For another stream: zeros are its state, and no ring is in use."""
        self._free = list(self._rings)
        for name, zeros in self._zeros.items():
            self.state_sets[0][name].write(zeros)

    def ring(self, runtime: Any, chunks: Sequence[Mapping[str, np.ndarray]], options: MakeOptions) -> Ring:
        """The places of these chunks: those of as many chunks that an earlier stream left, or new ones."""
        for number, ring in enumerate(self._free):
            if len(ring.inputs) == len(chunks):
                for places, arrays in zip(ring.inputs, chunks, strict=True):
                    for name, array in arrays.items():
                        places[name].write(array)
                return self._free.pop(number)
        inputs = tuple({name: self._place(name, array.copy()) for name, array in arrays.items()} for arrays in chunks)
        y = self._place("y", self._zero_y.copy())
        ring = Ring(inputs, y, tuple(self.bindings(runtime, inputs, y, options)))
        self._rings.append(ring)
        return ring

    def bindings(
        self, runtime: Any, inputs: Sequence[Mapping[str, Buffer]], y: Buffer, options: MakeOptions
    ) -> Iterator[ByTurns]:
        """The bindings of each chunk, one for each turn. The buffers must exist as long as the bindings."""
        for chunk in inputs:
            yield self._bound(runtime, chunk, y, 0, options()), self._bound(runtime, chunk, y, 1, options())

    def _bound(self, runtime: Any, inputs: Mapping[str, Buffer], y: Buffer, turn: int, options: Any) -> Any:
        binding = runtime.io_binding()
        for array in (*inputs.values(), *self.state_sets[turn].values()):
            for name, value in array.values.items():
                binding.bind_ortvalue_input(name, value)
        after = [(NEXT, array) for array in self.state_sets[1 - turn].values()]
        for prefix, array in [("", y), *after]:
            for name, value in array.values.items():
                binding.bind_ortvalue_output(prefix + name, value)
        return binding if options is None else (binding, options)


def run_options(entries: Mapping[str, str]) -> Any:
    """Options of a call with these entries."""
    options = ort.RunOptions()
    for name, value in entries.items():
        options.add_run_config_entry(name, value)
    return options

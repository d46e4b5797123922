"""The least cost of one call: the bytes that it must read, and the operations that it must do.

Each step multiplies the state by all recurrent weights. They do not fit in registers, so each step reads them again. If
a program projects many steps at once, one reading of the input's weights serves all of them. If there are two ways to
count, the lower number counts: biases are folded into one, layers run one after the other, and nothing is written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rnnbench.rnn.compound import CompoundNetwork
from rnnbench.rnn.network import Network


@dataclass(frozen=True)
class Reading:
    """Bytes that a call reads `times` times. Between two of these readings it reads all of `working_set` bytes."""

    nbytes: int
    working_set: int
    times: int


@dataclass(frozen=True)
class Cost:
    """What one call reads and computes."""

    readings: tuple[Reading, ...]
    operations: int
    """Arithmetic operations of one call: a multiply-add is two, an activation one."""
    weights: int
    """Bytes of all weights, biases folded."""

    @property
    def nbytes(self) -> int:
        """Bytes that one call must read. Weights are read as often as necessary, inputs and state once."""
        return sum(reading.nbytes * reading.times for reading in self.readings)


def call_cost(
    network: Network, chunk: int, batch: int, weight_bytes: int = 4, value_bytes: int = 4, hoisted: int | None = None
) -> Cost:
    """The cost of a call of `chunk` steps. A weight has `weight_bytes` bytes; an input or a state, `value_bytes`.

    `hoisted` is the number of steps that share one reading of the input's weights. None means all steps of the call.
    """
    if isinstance(network, CompoundNetwork):
        return _of_parts(network, chunk, batch, weight_bytes, value_bytes)
    groups = math.ceil(chunk / min(hoisted or chunk, chunk))
    graph = network.graph
    sizes = [(layer.hoistable_weights * weight_bytes, layer.step_weights * weight_bytes) for layer in graph]
    weights = sum(map(sum, sizes))
    states = sum(rows * size for rows, _, size in network.state_shapes(1).values())
    values = batch * (chunk * network.input + states)
    readings = [Reading(weights + values * value_bytes, weights or values * value_bytes, 1)]
    for of_input, of_state in sizes:
        readings.append(Reading(of_input + of_state, of_input + of_state, groups - 1))
        readings.append(Reading(of_state, of_state, chunk - groups))
    operations = chunk * batch * sum(layer.operations for layer in graph)
    return Cost(tuple(r for r in readings if r.nbytes and r.times), operations, weights)


def _of_parts(network: CompoundNetwork, chunk: int, batch: int, weight_bytes: int, value_bytes: int) -> Cost:
    """The costs of all parts. A part that the loop calls as often as it decides counts as called once per step."""
    costs = [
        call_cost(part.network, chunk * (part.rate or 1), batch, weight_bytes, value_bytes, None if part.rate else 1)
        for part in network.parts
    ]
    weights = sum(cost.weights for cost in costs)
    states = sum(rows * size for rows, _, size in network.state_shapes(1).values())
    once = weights + batch * (chunk * network.input + states) * value_bytes
    others = [reading for cost in costs for reading in cost.readings[1:]]
    return Cost((Reading(once, once, 1), *others), sum(cost.operations for cost in costs), weights)

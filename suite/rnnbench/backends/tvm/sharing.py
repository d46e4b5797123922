"""How the threads of a kernel share its work: one parallel region around the whole call, and barriers within.

A thread owns the same blocks of weights in every step. TVM's barrier spins, so a step costs one meeting of the threads
and not one launch. Each output is computed by one thread, in one order: results are those of a single thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from tvm import tirx
from tvm.tirx.script import builder as T

from rnnbench.backends.tvm.activations import Expr

REGION = "pragma_parallel_launch_point"
"""TVM's pragma: every thread runs the body. What is in no parallel loop, all of them do."""
BARRIER = "pragma_parallel_barrier_when_finish"
"""TVM's pragma: after the body, the threads wait for each other."""


class Sharing:
    """The threads of a kernel. With one thread, nothing is emitted but the work."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._turns: Expr = threads

    @contextmanager
    def region(self) -> Iterator[None]:
        """The part of a kernel that all threads run."""
        if self.threads == 1:
            yield
            return
        # The number is loaded for each loop. LLVM would copy all steps for a thread without work if it were a constant.
        turns = T.alloc_buffer((1,), "int32")
        T.buffer_store(turns, self.threads, [0])
        self._turns = turns[0]
        with _pragma(REGION):
            yield

    def shared(self, count: int, body: Callable[[Expr, Expr], None], wait: bool = True) -> None:
        """`body(first, number)` for each thread's part of `count` things.

        With `wait`, no thread goes on before all are done.
        """
        if self.threads == 1:
            body(0, count)
            return
        with self._each_thread(wait) as thread:
            first = tirx.floordiv(thread * count, self.threads)
            body(first, tirx.floordiv((thread + 1) * count, self.threads) - first)

    def alone(self, body: Callable[[], None], wait: bool = False) -> None:
        """Work of the first thread. With `wait`, no thread goes on before it is done."""
        if self.threads == 1:
            body()
            return
        with self._each_thread(wait) as thread, T.If(thread == 0), T.Then():
            body()

    @contextmanager
    def _each_thread(self, wait: bool) -> Iterator[Expr]:
        """What each thread runs, with its number. With `wait`, they wait for each other at the end."""
        with ExitStack() as stack:
            if wait:
                stack.enter_context(_pragma(BARRIER))
            yield stack.enter_context(T.parallel(self._turns))


def _pragma(key: str) -> T.frame.AttrFrame:
    return T.attr(tirx.IntImm("int32", 0), key, tirx.IntImm("int32", 1))

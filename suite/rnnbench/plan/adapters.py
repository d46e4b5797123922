"""Questions to adapters. Each adapter answers in a process of its own, so a crash ends only its own trials.

One process answers all questions for a backend. If it fails on a question after it has answered others, a new process
is asked the same. So no trial fails because of an earlier one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from threading import RLock
from typing import TypeVar

from rnnbench.backends import AdapterError, Probe, Request, Support, check_probe, check_support, entry_of
from rnnbench.backends.shared import Abilities, covered, refusal
from rnnbench.worker import AdapterProcess, AskProbe, Failed, WorkerError

T = TypeVar("T")

REQUESTS_AT_ONCE = 64
"""Requests that are sent at once. If the process ends, each is sent alone."""
AT_LIMITS = ("timed-out", "out-of-memory")
"""The outcomes of a question that ended at a limit of time or memory."""
ENOUGH = 3
"""The most failed questions on a route that are asked again in a new process. After that, an exception counts at once,
and after as many that ended at a limit, the route is not asked again: a case may have thousands of trials of it."""
STAND_IN = Probe(routes=("default",))
"""The probe in place of that of an adapter that fails to answer. Each of its trials then fails with the reason."""


class Adapter:
    """The suite's side of one backend's adapter. Used by several threads."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = RLock()
        self._process: AdapterProcess | None = None
        self._is_loaded = False
        self._probe: Probe | AdapterError | None = None
        self._failures: Counter[str] = Counter()
        self._at_limits: Counter[str] = Counter()
        """Failures, and those at a limit, by route."""

    def begin(self) -> None:
        """Start its process, unless it was probed already. Does not wait for it."""
        with self._lock:
            if self._probe is None and self._process is None:
                self._process, self._is_loaded = AdapterProcess(self.name), False

    def probe(self) -> Probe:
        """What is installed. The answer is kept, since each trial needs it. Raises AdapterError.

        If there is none in time, a new process is asked once: the first may have been forked while a thread of this
        one held a lock, at which it stands still.
        """
        with self._lock:
            if self._probe is None:
                self._probe = self._probed()
                if isinstance(self._probe, AdapterError) and self._probe.outcome == "timed-out":
                    self._probe = self._probed()
            if isinstance(self._probe, AdapterError):
                raise AdapterError(str(self._probe), self._probe.outcome)
            return self._probe

    def supports(self, requests: Sequence[Request]) -> list[Support | AdapterError]:
        """The adapter's answer to each request, or why there is none."""
        answers: list[Support | AdapterError] = []
        with self._lock:
            for first in range(0, len(requests), REQUESTS_AT_ONCE):
                together = requests[first : first + REQUESTS_AT_ONCE]
                try:
                    replies: Sequence[Support | Failed | None] = self._replies(together)
                except AdapterError:
                    replies = [None] * len(together)
                answers += map(self._settle, together, replies)
        return answers

    def close(self) -> None:
        """End its process. A later question starts a new one."""
        with self._lock:
            if self._process is not None:
                self._process.close()
                self._process = None

    def _probed(self) -> Probe | AdapterError:
        """The adapter's answer, or why there is none."""
        try:
            return check_probe(self.name, self._ask("probe", lambda process: process.answer(AskProbe())))
        except AdapterError as error:
            return error

    def _settle(self, request: Request, reply: Support | Failed | None) -> Support | AdapterError:
        """The answer that counts. `reply` is the process's; None if it gave none."""
        if isinstance(reply, Support):
            return reply
        route = request.route
        if self._at_limits[route] >= ENOUGH:
            reason = (
                f"the adapter of '{self.name}' is not asked for the support of {route} again: it ended {ENOUGH} times"
            )
            return AdapterError(f"{reason} at a limit of time or memory", "timed-out")
        if reply is not None and self._failures[route] >= ENOUGH:
            return self._failed(reply, "support")
        answer = self._ask_alone(request)
        if isinstance(answer, AdapterError):
            self._failures[route] += 1
            self._at_limits[route] += answer.outcome in AT_LIMITS
        return answer

    def _ask_alone(self, request: Request) -> Support | AdapterError:
        """The answer to a single request. If a used process fails on it, a new process is asked."""
        while True:
            is_new = self._process is None
            try:
                (reply,) = self._replies([request])
            except AdapterError as error:
                answer = error
            else:
                if isinstance(reply, Support):
                    return reply
                answer = self._failed(reply, "support")
            self.close()
            if is_new:
                return answer

    def _replies(self, requests: Sequence[Request]) -> list[Support | Failed]:
        """The replies to all requests. Raises AdapterError if the process ends or sends an invalid answer."""
        replies = self._ask("support", lambda process: process.supports(requests))
        if len(replies) != len(requests):
            self.close()
            reason = f"the adapter of '{self.name}' sent {len(replies)} answers to {len(requests)} questions"
            raise AdapterError(reason, "crashed")
        return [reply if isinstance(reply, Failed) else check_support(self.name, reply) for reply in replies]

    def _ask(self, what: str, question: Callable[[AdapterProcess], T]) -> T:
        """The answer of the process, which first starts and imports the adapter if it has not. Raises AdapterError.

        `what` names the question in the error.
        """
        step = "the import of its module"
        try:
            if self._process is None:
                self._process, self._is_loaded = AdapterProcess(self.name), False
            if not self._is_loaded:
                self._process.load()
                self._is_loaded = True
            step = what
            return question(self._process)
        except WorkerError as error:
            self.close()
            raise self._failed(error, step) from error

    def _failed(self, failed: Failed | WorkerError, what: str) -> AdapterError:
        has_answered = failed.outcome == "run-failed"
        reason = failed.reason if has_answered else f"the adapter of '{self.name}' ended in {what}: {failed.reason}"
        return AdapterError(reason, failed.outcome)


_adapters: dict[str, Adapter] = {}


def begin(backends: Iterable[str]) -> None:
    """Start the processes of these adapters side by side, before all of them are probed. Raises BackendError."""
    for backend in backends:
        _adapter(backend).begin()


def probe(backend: str) -> Probe:
    """What the adapter says is installed. Raises BackendError, and AdapterError if the adapter fails to answer."""
    return _adapter(backend).probe()


def probe_or_stand_in(backend: str) -> Probe:
    """What the adapter says is installed; `STAND_IN` if it fails to answer. Raises BackendError."""
    try:
        return probe(backend)
    except AdapterError:
        return STAND_IN


def supports(backend: str, requests: Sequence[Request]) -> list[Support | AdapterError]:
    """Whether the backend supports each request, or why its adapter has no answer.

    A request that the suite refuses for every backend is not sent to the adapter. Raises BackendError, and AdapterError
    if the adapter fails to say what is installed.
    """
    adapter = _adapter(backend)
    abilities = Abilities.of(adapter.probe())
    refused = [refusal(backend, request, abilities) for request in requests]
    unrefused = [request for request, answer in zip(requests, refused, strict=True) if answer is None]
    answers = iter(adapter.supports(unrefused))
    return [
        answer or _covered(backend, request, next(answers)) for request, answer in zip(requests, refused, strict=True)
    ]


def support(backend: str, request: Request) -> Support:
    """As `supports`, for one request. Raises BackendError, and AdapterError if the adapter fails to answer."""
    (answer,) = supports(backend, [request])
    if isinstance(answer, AdapterError):
        raise answer
    return answer


def close_adapters() -> None:
    """End the processes of all adapters. Call it before trials are built and timed, and at the end of a run."""
    for adapter in _adapters.values():
        adapter.close()


def _covered(backend: str, request: Request, answer: Support | AdapterError) -> Support | AdapterError:
    return answer if isinstance(answer, AdapterError) else covered(backend, request, answer)


def _adapter(name: str) -> Adapter:
    entry_of(name)
    return _adapters.setdefault(name, Adapter(name))

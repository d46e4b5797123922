"""Adapters that are wrong after many equal turns, in calls of some lengths, or where another thread goes on."""

from __future__ import annotations

import threading

import numpy as np
from honest_adapter import HonestBound, HonestSession
from planted import BATCH, fault, let_others_run, timed

OFF = np.float32(1.01)


class Turns(HonestSession):
    """Knows what was done with it: `r` a reset, `s` a state that is set, `p` a public call, `b` a bound call."""

    done = ""

    def reset(self):
        self.done += "r"
        super().reset()

    def set_state(self, state):
        self.done += "s"
        super().set_state(state)

    def step(self, inputs):
        y = super().step(inputs)["y"]
        self.done += "p"
        return {"y": self.of_public(y)}

    def of_public(self, y):
        return y

    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                super().__call__()
                self.y = self.session.of_bound(self.y)
                self.session.done += "b"

        return Bound(self, ring)

    def of_bound(self, y):
        return y


# Resets, states that are set, and looks, one after the other.


@fault("resets")
class ResetsInARowMissTheirPlace(Turns):
    """The fourth one adds what it should clear."""

    def reset(self):
        super().reset()
        if self.done.endswith("rrrr") and not self.done.endswith("rrrrr"):
            self.state = {name: array + np.float32(0.1) for name, array in self.state.items()}


@fault("resets")
class AQueueOfFourStatesThatAreSet(Turns):
    def set_state(self, state):
        super().set_state(state)
        if self.done.endswith("sssss"):
            self.state = {name: array * 0 for name, array in self.state.items()}


class CountsLooks(HonestSession):
    """Of each kind, since the last call."""

    looks = 0

    def compute(self, x):
        self.looks = 0
        return super().compute(x)


@fault("mixed")
class TheEighthLookAtAStateIsEmpty(CountsLooks):
    def _read_state(self):
        self.looks += 1
        state = super()._read_state()
        return {name: array * 0 for name, array in state.items()} if self.looks == 8 else state


@timed("mixed")
class TheEighthLookAtAnOutputIsEmpty(HonestBound):
    looks = 0

    def __call__(self):
        self.looks = 0
        super().__call__()

    def output(self):
        self.looks += 1
        return {"y": self.y * 0} if self.looks == 8 else super().output()


@timed("mixed")
class AFifthSyncDropsTheOutput(HonestBound):
    syncs = 0

    def __call__(self):
        self.syncs = 0
        super().__call__()

    def sync(self):
        self.syncs += 1
        if self.syncs == 5:
            self.y = self.y * 0


# Many calls of one path, and then something else.


@fault("mixed")
class APublicCallAfterManyBoundOnesIsWrong(Turns):
    def of_public(self, y):
        return y * OFF if self.done.endswith("b" * 40 + "p") else y


@fault("mixed")
class AResetAfterManyBoundCallsIsLost(Turns):
    def reset(self):
        before = getattr(self, "state", None)
        if self.done.endswith("b" * 40):
            self.done += "r"
            self.state = before
        else:
            super().reset()


@fault("mixed")
class AStateAfterManyBoundCallsIsAnOldOne(Turns):
    """As long as the stream has seen no public call."""

    def _bind(self, ring):
        self.at_binding = {name: array.copy() for name, array in self.state.items()}
        return super()._bind(ring)

    def _read_state(self):
        state = super()._read_state()
        return self.at_binding if self.done.endswith("b" * 70) else state


@fault("chunks")
class PublicCallsInARowWearOut(Turns):
    def of_public(self, y):
        return y * OFF if self.done.endswith("p" * 35) else y


@fault("chunks")
class ABoundCallAfterManyPublicOnesIsWrong(Turns):
    def of_bound(self, y):
        return y * OFF if self.done.endswith("p" * 35) else y


# Chunks: calls of one step in a row, and long calls.


class CountsRests(HonestSession):
    rests = 0

    def _in_chunks(self, x):
        self.rests += 1
        return self.worn(super()._in_chunks(x))


@fault("chunks")
class TheTailWearsOut(CountsRests):
    def worn(self, y):
        return y * OFF if self.rests > 30 else y


@fault("chunks")
class TheThirtiethRestAloneIsWrong(CountsRests):
    def worn(self, y):
        return y * OFF if self.rests == 30 else y


class OfLengths(HonestSession):
    fewest = most = 0

    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        return y * OFF if self.fewest <= len(x) <= self.most else y


@fault("chunks")
class CallsOf33To64StepsAreWrong(OfLengths):
    fewest, most = 33, 64


@fault("chunks", cell="gru")
class CallsOf65To128StepsAreWrong(OfLengths):
    fewest, most = 65, 128


@fault("chunks", chunk=1)
class CallsOf129To256StepsAreWrong(OfLengths):
    fewest, most = 129, 256


@fault("chunks", cell="rnn")
class CallsOf257To512StepsAreWrong(OfLengths):
    fewest, most = 257, 512


@fault("chunks", layers=2)
class CallsOf513To1000StepsAreWrong(OfLengths):
    fewest, most = 513, 1_000


@fault("chunks")
class StepsOfACallBeyondTwoHundredAreHalf(HonestSession):
    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        y[200:] /= 2
        return y


class GuessesTheDimensions(HonestSession):
    """Takes the steps for another dimension of x where both are as long."""

    other = 0

    def step(self, inputs):
        x = inputs.get("x")
        if isinstance(x, np.ndarray) and x.ndim == 3 and x.shape[0] == x.shape[self.other]:
            return super().step({"x": x.swapaxes(0, self.other)})
        return super().step(inputs)


@fault("chunks", batch=13)
class AsManyStepsAsRowsAreTakenForRows(GuessesTheDimensions):
    other = 1


@fault("chunks", input=11)
class AsManyStepsAsInputsAreTakenForInputs(GuessesTheDimensions):
    other = 2


# Rings of one number of chunks.


class OfChunks(HonestBound):
    chunks = 0

    def __call__(self):
        super().__call__()
        if len(self.ring) == self.chunks:
            self.y = self.y * OFF


@timed("rings")
class ARingOfFiveChunksIsWrong(OfChunks):
    chunks = 5


@timed("rings")
class ARingOfSixChunksIsWrong(OfChunks):
    chunks = 6


@timed("rings")
class ARingOfSevenChunksIsWrong(OfChunks):
    chunks = 7


class OfPasses(HonestBound):
    """Gives an old y from some call of a short ring on."""

    chunks = right = 0

    def __call__(self):
        y = self.y
        super().__call__()
        if len(self.ring) == self.chunks and self.calls > self.right:
            self.y = y


@timed("rings")
class ARingOfTwoChunksStopsAfterItsFirstPass(OfPasses):
    chunks, right = 2, 2


@timed("rings")
class ARingOfOneChunkStopsAfterEightPasses(OfPasses):
    chunks, right = 1, 8


# Threads: a turn in another thread than the one before it.


class OfAThread(HonestSession):
    def __init__(self, program):
        self.thread = threading.get_ident()
        super().__init__(program)

    @property
    def elsewhere(self):
        return threading.get_ident() != self.thread


@fault("threads")
class ARingThatAnotherThreadBindsIsWrong(OfAThread):
    def _bind(self, ring):
        return super()._bind([x * OFF for x in ring] if self.elsewhere else ring)


@fault("threads")
class AnOutputIsEmptyInAnotherThread(HonestSession):
    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                super().__call__()
                self.thread = threading.get_ident()

            def output(self):
                return {"y": self.y * (threading.get_ident() == self.thread)}

        return Bound(self, ring)


@fault("threads")
class AStateThatAnotherThreadReadsIsOld(OfAThread):
    def _read_state(self):
        state = super()._read_state()
        if not self.elsewhere:
            self.read = {name: array.copy() for name, array in state.items()}
        return getattr(self, "read", state) if self.elsewhere else state


@fault("threads")
class RingsThatAreBoundAtOnceAreOne(HonestSession):
    def _bind(self, ring):
        self._program.__dict__["binding"] = ring
        let_others_run(lambda: self._program.binding is not ring, patience_s=0.5)
        return super()._bind(self._program.binding)


# NaN: elsewhere than in the first step.


@fault("nan", **BATCH)
class NanInTheLastStepOfACallSpreads(HonestSession):
    def compute(self, x):
        y = super().compute(x)
        return y * np.float32(np.nan) if np.isfinite(x[0]).all() and not np.isfinite(x[-1]).all() else y


@fault("nan", **BATCH)
class NanInTheLastStepOfACallSurvives(HonestSession):
    is_poisoned = False

    def compute(self, x):
        y = super().compute(x)
        y = y * np.float32(np.nan) if self.is_poisoned else y
        self.is_poisoned = bool(np.isfinite(x[0]).all() and not np.isfinite(x[-1]).all())
        return y


@fault("nan", **BATCH)
class NanInARestSpreads(HonestSession):
    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        return y if np.isfinite(y).all() else y * np.float32(np.nan)


@fault("nan")
class NanInARestSurvives(HonestSession):
    is_poisoned = False

    def _in_chunks(self, x):
        y = super()._in_chunks(x)
        y = y * np.float32(np.nan) if self.is_poisoned else y
        self.is_poisoned |= not np.isfinite(y).all()
        return y


@fault("nan", **BATCH)
class NanInAllRowsSurvivesAReset(HonestSession):
    is_poisoned = False

    def compute(self, x):
        y = super().compute(x)
        y = y * np.float32(np.nan) if self.is_poisoned else y
        self.is_poisoned |= bool(np.isnan(y).any(axis=(0, 2)).all())
        return y


@fault("nan")
class AnInfiniteStateIsTheLargestNumber(HonestSession):
    def _write_state(self, state):
        most = np.finfo(np.float32).max
        super()._write_state({name: np.clip(array, -most, most) for name, array in state.items()})


@fault("nan", cell="gru")
class AStateThatIsNoNumberIsZero(HonestSession):
    def _write_state(self, state):
        super()._write_state(
            {name: np.nan_to_num(array, posinf=np.inf, neginf=-np.inf) for name, array in state.items()}
        )


class KnowsTheLengthsOfItsCalls(HonestSession):
    """Wrong in a public call where `is_wrong` says so of the steps of its last calls, this one last."""

    lengths: tuple[int, ...] = ()

    @staticmethod
    def is_wrong(lengths):
        raise NotImplementedError

    def step(self, inputs):
        y = super().step(inputs)["y"]
        self.lengths = (*self.lengths, len(y))[-8:]
        return {"y": y + np.float32(1e-3) * self.is_wrong(self.lengths)}


@fault("chunks")
class AStepAfterSixteenStepsIsWrong(KnowsTheLengthsOfItsCalls):
    """A plan that is kept by its length, and taken for the next one."""

    @staticmethod
    def is_wrong(lengths):
        return lengths[-2:] == (16, 1)


@fault("chunks")
class CallsOf1And16And1And7StepsAreWrong(KnowsTheLengthsOfItsCalls):
    @staticmethod
    def is_wrong(lengths):
        return lengths[-4:] == (1, 16, 1, 7)


@fault("chunks")
class AThirdShorterCallIsWrong(KnowsTheLengthsOfItsCalls):
    """A buffer that shrinks."""

    @staticmethod
    def is_wrong(lengths):
        return len(lengths) > 2 and lengths[-3] > lengths[-2] > lengths[-1]


@fault("chunks")
class AMuchLongerCallIsWrong(KnowsTheLengthsOfItsCalls):
    @staticmethod
    def is_wrong(lengths):
        return len(lengths) > 1 and lengths[-2] > 1 and lengths[-1] >= 8 * lengths[-2]


@fault("chunks")
class AnotherLengthAfterSevenEqualOnesIsWrong(KnowsTheLengthsOfItsCalls):
    """What was specialised for the calls so far is not given up."""

    @staticmethod
    def is_wrong(lengths):
        return len(lengths) == 8 and len(set(lengths[:7])) == 1 and lengths[7] not in (lengths[6], 50)

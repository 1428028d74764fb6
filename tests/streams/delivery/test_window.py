"""The window against a naive model, and its laws."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from streams.delivery import Window


class AgainstModel(RuleBasedStateMachine):
    """The model is a plain list of what was taken and two sets."""

    @initialize(start=st.integers(0, 2**62))
    def begin(self, start: int) -> None:
        self.window = Window(start)
        self.start = self.next = start
        self.taken: dict[int, int] = {}
        self.finished: set[int] = set()
        self.absorbed: set[int] = set()

    @rule(gap=st.integers(0, 3), size=st.integers(0, 10_000))
    def take(self, gap: int, size: int) -> None:
        offset = self.next + gap
        self.window.take(offset, size)
        self.taken[offset] = size
        self.next = offset + 1

    @rule(back=st.integers(1, 5))
    def take_again(self, back: int) -> None:
        with pytest.raises(ValueError, match="taken already"):
            self.window.take(self.next - back, 1)

    def pick(self, data: st.DataObject) -> int:
        return data.draw(st.integers(self.start - 2, self.next + 2) | st.sampled_from(sorted(self.taken)))

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        offset = self.pick(data)
        is_open = offset in self.taken and offset not in self.finished
        assert self.window.finish(offset) is is_open
        if is_open:
            self.finished.add(offset)

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def absorb(self, data: st.DataObject) -> None:
        offset = self.pick(data)
        is_open = offset in self.taken and offset not in self.finished
        assert self.window.absorb(offset) is is_open
        if is_open:
            self.absorbed.add(offset)

    @invariant()
    def same_as_the_model(self) -> None:
        unfinished = [offset for offset in self.taken if offset not in self.finished]
        unhandled = [offset for offset in unfinished if offset not in self.absorbed]
        assert self.window.next == self.next
        assert self.window.watermark == min(unfinished, default=self.next)
        assert self.window.frontier == min(unhandled, default=self.next)
        assert len(self.window) == len(unfinished)
        assert self.window.bytes == sum(self.taken[offset] for offset in unfinished)
        assert all(self.window.is_waiting(offset) == (offset in unhandled) for offset in self.taken)

    @invariant()
    def nothing_unfinished_is_below_the_watermark(self) -> None:
        assert self.window.watermark <= self.window.frontier <= self.window.next


TestAgainstModel = AgainstModel.TestCase
TestAgainstModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_window_with_a_pinned_head_stays_quick() -> None:
    window = Window(0)
    for offset in range(100_000):
        window.take(offset, 1)
    for offset in range(1, 100_000):
        window.finish(offset)
        assert window.watermark == 0
    window.finish(0)
    assert (window.watermark, len(window), window.bytes) == (100_000, 0, 0)

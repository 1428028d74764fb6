"""A lane: one assigned partition in one epoch, as its agent sees it."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from schemas.messages import Failure
from streams import metrics
from streams.delivery.dead_letters import dead_letter
from streams.delivery.outlet import Outlet
from streams.delivery.records import Output, Place, Record, bytes_of, size_of
from streams.delivery.suspects import Note, Suspicion
from streams.delivery.window import Window

log = logging.getLogger(__name__)

Refuse = Callable[[Record, Failure], Sequence[Output]]
_UNSUSPECTED = Suspicion()


class Lane:
    """Settles records: writes what they caused, and finishes their offsets when that is acknowledged.

    `start` is the committed watermark at assignment, `end` the log's end then; from `suspect` on nobody is
    known to have handled the records, and where one of them is suspected of killing its process they are
    handled one by one up to `suspects_end`. `writing_bytes` is what was settled and is not acknowledged yet.
    Once revoked, `alive` is False and every call does nothing: work of an old epoch finishes silently.
    """

    def __init__(
        self,
        place: Place,
        epoch: int,
        start: int,
        end: int,
        outlet: Outlet,
        *,
        group: str,
        refuse: Refuse,
        suspicion: Suspicion = _UNSUSPECTED,
        most_open: int | None = None,
    ) -> None:
        self.place = place
        self.epoch = epoch
        self.start = start
        self.end = end
        self.alive = True
        self.window = Window(start)
        self.suspicion = suspicion
        self.suspect = max(start, suspicion.frontier)
        # A dead process had at most so many records open. With a backlog of thousands, taking all of it one
        # by one after two kills cost more than the kills.
        self.suspects_end = end if most_open is None else min(end, self.suspect + most_open)
        self.careful = suspicion.alone or suspicion.guilty >= 0
        self.condemned = set(suspicion.condemned)
        self.handed_out = False
        self.given = start - 1
        self.alone = -1
        self.paused = False
        self.writing = 0
        self.writing_bytes = 0
        self.finished = 0
        self._times: deque[tuple[int, int]] = deque()
        self._outlet = outlet
        self._group = group
        self._refuse = refuse

    @property
    def topic(self) -> str:
        return self.place.topic

    @property
    def partition(self) -> int:
        return self.place.partition

    def take(self, records: Iterable[Record]) -> list[Record]:
        """Take `records` into the window; those it passed already (fetched again after a seek) are left
        out."""
        taken = [record for record in records if record.offset >= self.window.next]
        for record in taken:
            self.window.take(record.offset, size_of(record))
        if taken:
            self._times.append((taken[0].offset, taken[0].timestamp))
            self._forget_times()
        return taken

    @property
    def oldest_at(self) -> float:
        """When the oldest record taken and not finished was appended (ms; that of the first of its batch);
        infinite where there is none."""
        self._forget_times()
        return self._times[0][1] if len(self.window) else math.inf

    def _forget_times(self) -> None:
        times, watermark = self._times, self.window.watermark
        while len(times) > 1 and times[1][0] <= watermark:
            times.popleft()

    def settle(self, offsets: Iterable[int], outputs: Sequence[Output] = ()) -> None:
        """Write `outputs` until they are acknowledged, then finish `offsets`."""
        if not self.alive:
            return
        offsets = tuple(offsets)
        if outputs:
            self._outlet.post(outputs, lambda: self._written(offsets, outputs))
            self.writing += 1
            self.writing_bytes += sum(map(bytes_of, outputs))
        else:
            self._finish(offsets)

    def send(self, outputs: Sequence[Output]) -> None:
        """Write `outputs`; the offset that caused them stays open for another reason."""
        self.settle((), outputs)

    def absorb(self, offset: int) -> None:
        """`offset` was handled and stays unfinished until a later `settle`."""
        if self.alive and self.window.absorb(offset):
            self.finished += 1

    def fail(self, record: Record, failure: Failure) -> None:
        """Dead-letter `record`, untouched, and answer it with an error where an id can be read."""
        if not self.alive:
            return
        metrics.DEAD_LETTERS.labels(self.topic, failure.code).inc()
        log.warning("%s/%d offset %d is dead-lettered: %s", *self.place, record.offset, failure.code)
        letter = dead_letter(record, failure, group=self._group, attempt=self.suspicion.unclean + 1)
        self.settle((record.offset,), [letter, *self._answer(record, failure)])

    def is_drained(self) -> bool:
        """Whether nothing is in hand: every record handed out is handled and every write acknowledged."""
        return self.writing == 0 and not self.is_busy()

    def is_busy(self) -> bool:
        """Whether a record that was handed out is not handled yet."""
        return self.window.frontier <= self.given

    def note(self) -> Note:
        """The note of a commit: an end of the process from now on counts against what is handed out."""
        if not self.handed_out:
            return self.parting_note()
        unclean = self.suspicion.unclean if self._suspicion_stands() else 0
        alone = self.alone if self.alone >= 0 else self._guilty()
        return Note(
            max(self.window.frontier, self.suspect), unclean, alone, condemned=self._still_condemned()
        )

    def parting_note(self) -> Note:
        """The note of a hand-over by a living process: it accuses nobody, and keeps what it was told."""
        condemned = self._still_condemned()
        if not self.suspicion.unclean or not self._suspicion_stands():
            return Note(clean=True, condemned=condemned)
        frontier = max(self.window.frontier, self.suspect)
        return Note(frontier, self.suspicion.unclean - 1, self._guilty(), condemned=condemned)

    def _suspicion_stands(self) -> bool:
        return self.careful or self.window.frontier <= self.suspect

    def _still_condemned(self) -> tuple[int, ...]:
        # Behind a join that stays open a condemned record is read again by each owner.
        watermark = self.window.watermark if self.condemned else 0
        return tuple(sorted(offset for offset in self.condemned if offset >= watermark))

    def _guilty(self) -> int:
        guilty = self.suspicion.guilty
        return guilty if self.window.frontier <= guilty and guilty not in self.condemned else -1

    def _answer(self, record: Record, failure: Failure) -> Sequence[Output]:
        try:
            return self._refuse(record, failure)
        except Exception:  # user code; without this the record would end every process that condemns it
            log.exception("%s/%d offset %d: no error answer could be made", *self.place, record.offset)
            return ()

    def _written(self, offsets: tuple[int, ...], outputs: Sequence[Output]) -> None:
        self.writing -= 1
        self.writing_bytes -= sum(map(bytes_of, outputs))
        if self.alive:
            self._finish(offsets)

    def _finish(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            if self.window.finish(offset):
                self.finished += 1

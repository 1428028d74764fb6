"""A file of recorded traffic, read twice: once as it lies, once in order of time."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import IO

from edgeway.recorded import Recorded, parse_recorded
from edgeway.request_lines import BadLine

LONGEST = 8 * 2**20
"""A line may be so long: a request and its result, each of a record's length at most, in JSON."""


class RecordedFile:
    """The records of `stream`, which can be read again. In memory stand 24 bytes a record."""

    def __init__(self, stream: IO[bytes], bad: Callable[[BadLine], None]) -> None:
        self._stream = stream
        self._bad = bad
        self._places = array("q")
        self._times = array("q")
        self._numbers = array("q")
        self._sorted = True

    def scan(self) -> Iterator[Recorded]:
        """Every record in the order of the file; each bad line is told of."""
        number, at = 0, 0
        self._stream.seek(0)
        while True:
            place = self._stream.tell()
            line = self._stream.readline(LONGEST + 1)
            if not line:
                return
            number += 1
            found = self._parsed(number, line)
            if found is None:
                continue
            self._places.append(place)
            self._numbers.append(number)
            # One without a time came when the one before it did.
            at = found.at or at
            self._sorted = self._sorted and (not self._times or self._times[-1] <= at)
            self._times.append(at)
            yield found

    def in_time(self) -> Iterator[Recorded]:
        """Every record of `scan`, which must have ended, in order of `at`."""
        order = range(len(self._times))
        for index in order if self._sorted else sorted(order, key=self._times.__getitem__):
            self._stream.seek(self._places[index])
            found = parse_recorded(self._numbers[index], self._cleaned(self._stream.readline(LONGEST + 1)))
            if isinstance(found, Recorded):
                yield found._replace(at=self._times[index])

    def _parsed(self, number: int, line: bytes) -> Recorded | None:
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = self._stream.readline(LONGEST + 1)
            self._bad(BadLine(number, f"longer than {LONGEST} bytes"))
            return None
        raw = self._cleaned(line)
        if not raw:
            return None
        found = parse_recorded(number, raw)
        if isinstance(found, BadLine):
            self._bad(found)
            return None
        return found

    @staticmethod
    def _cleaned(line: bytes) -> bytes:
        return line.strip().removeprefix(b"\xef\xbb\xbf").strip()

"""Pausing: a partition whose window is full is read again when that is half empty."""

from __future__ import annotations

from collections.abc import Iterable

from streams.delivery.driver import Source
from streams.delivery.lane import Lane
from streams.delivery.settings import InletSettings


def pause_and_resume(source: Source, lanes: Iterable[Lane], settings: InletSettings) -> None:
    """Pause at the limits, resume at half of them: each pause makes the client fetch anew."""
    if not settings.pausing:
        return
    most, most_bytes = settings.window_records, settings.window_bytes
    for lane in lanes:
        records, size = len(lane.window), lane.window.bytes
        if not lane.paused and (records >= most or size >= most_bytes):
            source.pause([lane.place])
            lane.paused = True
        elif lane.paused and records <= most // 2 and size <= most_bytes // 2:
            source.resume([lane.place])
            lane.paused = False

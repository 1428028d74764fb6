"""What a process shows of its inlets: what is open, how old it is, how far they are behind."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from prometheus_client import disable_created_metrics

from edgeway.versions import version
from streams import metrics
from streams.delivery import Inlet


def begin() -> None:
    """Show which build runs, on which Python, and no time of creation for each series, which doubles a
    scrape."""
    disable_created_metrics()  # type: ignore[no-untyped-call]
    metrics.BUILD_INFO.labels(version(), platform.python_version()).set(1)


class Gauges:
    """The gauges of one inlet, which reads `topics`."""

    def __init__(self, inlet: Inlet, topics: Sequence[str]) -> None:
        self._inlet = inlet
        self._topics = tuple(topics)

    def show(self, now: int) -> None:
        """Set them to what is so at `now` (ms on the broker's clock)."""
        group, lanes = self._inlet.settings.group, list(self._inlet.lanes.values())
        metrics.OPEN_RECORDS.labels(group).set(sum(len(lane.window) for lane in lanes))
        metrics.OPEN_BYTES.labels(group).set(sum(lane.window.bytes for lane in lanes))
        lag = self._inlet.lag()
        for topic in self._topics:
            oldest = min((lane.oldest_at for lane in lanes if lane.topic == topic), default=now)
            metrics.OLDEST_RECORD_S.labels(group, topic).set(max(0, now - min(now, oldest)) / 1000.0)
            metrics.LAG.labels(group, topic).set(lag.get(topic, 0))

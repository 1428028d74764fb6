"""``edgeway broker``: the embedded Kafka alone, until it is interrupted."""

import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType

from edgeway.embedded.errors import EmbeddedKafkaError
from edgeway.embedded.kafka import EmbeddedKafka
from edgeway.embedded.settings import BrokerSettings
from edgeway.signals import stopping

WATCH = 0.5
FAILED = 1


def broker(data: str | None, port: int | None, brokers: int = 1) -> int:
    """Run brokers until SIGINT, SIGTERM or SIGHUP; the first line of output is the bootstrap address.

    Returns the exit code: 0 after a signal, 2 where the port or the data folder cannot be used, 1 when the
    start failed otherwise or a broker ended by itself. To be called from the main thread: it sets signal
    handlers.
    """
    asked = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        asked.set()

    previous = {number: signal.signal(number, ask) for number in stopping()}
    try:
        settings = BrokerSettings(data=Path(data) if data is not None else None, port=port, brokers=brokers)
        kafka = EmbeddedKafka(settings)
        _start(kafka, asked)
        try:
            return _run(kafka, asked)
        finally:
            kafka.stop_sync()
    except EmbeddedKafkaError as exc:
        if asked.is_set():
            return 0
        print(f"edgeway broker: {exc}", file=sys.stderr)
        return exc.exit_code
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _start(kafka: EmbeddedKafka, asked: threading.Event) -> None:
    """Start in a second thread, so that a signal is heard meanwhile."""
    with ThreadPoolExecutor(1, thread_name_prefix="edgeway-broker-start") as pool:
        start = pool.submit(kafka.start_sync)
        while not wait([start], timeout=0.1).done:
            if asked.is_set():
                kafka.give_up()
        start.result()


def _run(kafka: EmbeddedKafka, asked: threading.Event) -> int:
    kept = "kept" if kafka.settings.data is not None else "temporary, removed at the end"
    print(kafka.bootstrap, flush=True)
    print(f"Apache Kafka {kafka.settings.version}, brokers: {kafka.settings.brokers}", file=sys.stderr)
    print(f"data and logs: {kafka.data} ({kept}); log files kafka-N.log", file=sys.stderr)
    print("Ctrl-C stops it", file=sys.stderr, flush=True)
    while not asked.wait(WATCH):
        for number, why in kafka.ended.items():
            print(f"edgeway broker: broker {number} ended by itself: {why}", file=sys.stderr)
            return FAILED
    return 0

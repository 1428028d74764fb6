"""Why Kafka cannot be reached is said each time, also where the log is spared the same line."""

from __future__ import annotations

import logging

import pytest

from edgeway import kafka
from edgeway.client.quiet import spare_the_log
from edgeway.errors import KafkaUnreachable
from streams.settings import Settings


def reach_in_vain() -> None:
    with kafka.reaching(Settings()):
        logging.getLogger("aiokafka.client").error("it says no")
        raise TimeoutError


def test_a_reason_is_told_also_where_the_log_is_spared_its_line() -> None:
    logging.getLogger("aiokafka.client")
    spare_the_log()
    for _ in range(3):
        with pytest.raises(KafkaUnreachable, match="it says no"):
            reach_in_vain()

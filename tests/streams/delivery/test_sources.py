"""The source in memory is held to the contract of the real one."""

from __future__ import annotations

import pytest

from tests.helpers.delivery import FakeGroup, FakeSource
from tests.helpers.delivery_contracts import SourceContract


class FakeRig:
    topic = "in"

    def __init__(self) -> None:
        self.group = FakeGroup(partitions=3)

    async def append(self, partition: int, *values: bytes) -> None:
        self.group.append(*values, partition=partition)

    def member(self) -> FakeSource:
        return FakeSource(self.group)


@pytest.fixture
def source_rig() -> FakeRig:
    return FakeRig()


class TestFakeSource(SourceContract):
    pass

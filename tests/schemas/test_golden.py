from __future__ import annotations

from pathlib import Path

import pytest

from schemas.codec import decode, decode_request, encode
from schemas.messages import JoinEvent, Request
from tests.schemas.examples import EXAMPLES

GOLDEN = Path(__file__).parent / "golden"
SUFFIXES = {"msgpack": "bin", "json": "json"}


@pytest.mark.parametrize("fmt", SUFFIXES)
@pytest.mark.parametrize("name", EXAMPLES)
class TestVersion1:
    """Bytes once written must be read for ever; to change them is to change the version."""

    def test_is_read(self, name, fmt):
        raw = (GOLDEN / f"v1-{name}.{SUFFIXES[fmt]}").read_bytes()
        assert decode(raw, type(EXAMPLES[name]), fmt) == EXAMPLES[name]
        assert decode(raw, type(EXAMPLES[name])) == EXAMPLES[name]

    def test_is_written(self, name, fmt):
        assert encode(EXAMPLES[name], fmt) == (GOLDEN / f"v1-{name}.{SUFFIXES[fmt]}").read_bytes()


def test_every_golden_file_has_an_example():
    found = {path.name for path in GOLDEN.iterdir()}
    assert found == {f"v1-{name}.{suffix}" for name in EXAMPLES for suffix in SUFFIXES.values()}


@pytest.mark.parametrize("name", ["plan", "partial", "checkpoint"])
def test_join_events_are_told_apart(name):
    raw = (GOLDEN / f"v1-{name}.bin").read_bytes()
    assert decode(raw, JoinEvent) == EXAMPLES[name]


def test_requests_are_read_by_both_doors():
    raw = (GOLDEN / "v1-request.bin").read_bytes()
    assert decode_request(raw) == decode(raw, Request) == EXAMPLES["request"]

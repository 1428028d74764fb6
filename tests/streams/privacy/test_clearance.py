"""A clearance is good for one payload, and only `clear` makes one."""

from __future__ import annotations

import copy
import pickle

import pytest

from schemas.messages import Verdict
from streams.privacy.clearance import Clearance, Forbidden, clear


def test_a_clearance_covers_its_payload_alone() -> None:
    given = clear(Verdict(), b"harmless")
    assert given.covers(b"harmless")
    assert not given.covers(b"harmless ")
    assert not given.covers(b"")


@pytest.mark.parametrize("masked", [False, True])
def test_high_is_never_cleared_be_it_masked(masked: bool) -> None:
    with pytest.raises(Forbidden, match="email"):
        clear(Verdict(level="high", reasons=("email",), masked=masked), b"x")


@pytest.mark.parametrize("seal", [None, object(), "seal", True])
def test_no_one_else_makes_one(seal: object) -> None:
    with pytest.raises(TypeError):
        Clearance(b"x" * 32, seal=seal)
    with pytest.raises(TypeError):
        type("Forged", (Clearance,), {})


def test_a_clearance_cannot_be_turned_to_another_payload() -> None:
    given = clear(Verdict(), b"harmless")
    with pytest.raises(AttributeError):
        given.digest = clear(Verdict(), b"other").digest
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            way(given)
    assert given.covers(b"harmless")

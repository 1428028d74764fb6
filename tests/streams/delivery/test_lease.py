"""The zombie rule."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streams.delivery.lease import Lease


def test_nothing_is_proved_at_first() -> None:
    assert not Lease(6.0, 100.0).is_fresh(100.0)


def test_a_proof_holds_for_half_a_session_from_the_sending() -> None:
    lease = Lease(6.0, 100.0)
    lease.prove(200.0)
    assert lease.is_fresh(202.9)
    assert not lease.is_fresh(203.0)


def test_an_older_proof_that_is_acknowledged_late_takes_nothing_back() -> None:
    lease = Lease(6.0, 0.0)
    lease.prove(10.0)
    lease.prove(5.0)
    assert lease.is_fresh(12.0)


@given(st.lists(st.floats(0, 1000), min_size=1), st.floats(0, 2000))
def test_a_lease_is_never_fresh_a_whole_session_after_the_last_proof(proofs: list[float], now: float) -> None:
    lease = Lease(6.0, 0.0)
    for proof in proofs:
        lease.prove(proof)
    assert lease.is_fresh(now) == (now - max(proofs) < 3.0)

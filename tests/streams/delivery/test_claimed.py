"""No record with a claim of an object outside the cloud's store gets into a cloud topic."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import codec
from schemas.claims import as_value
from schemas.messages import Claim, Subtask
from streams.delivery import Cleared, Outgoing, Uncleared
from streams.delivery.claimed import claims_allow
from streams.privacy.clearance import clear
from streams.privacy.verdict import NORMAL
from tests.streams.delivery.test_outlet import FakeSink, started

LOCAL = Claim(dataref="s3://edge/_/20260101/x", sha256="0" * 64, size=9)
CLOUD = Claim(dataref="s3://cloud/_/20260101/x", sha256="0" * 64, size=9)


def in_cloud(dataref: str) -> bool:
    return dataref.startswith("s3://cloud/")


def record(**fields: Any) -> bytes:
    return codec.encode(Subtask(id="r/s/cloud/0", capability="x", deadline=1, **fields))


AROUND = st.recursive(
    st.just(None),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=2)
        | st.dictionaries(st.text(max_size=3), inner, min_size=1, max_size=2)
    ),
    max_leaves=4,
)


def planted(around: Any, value: Any) -> Any:
    """`around` with `value` at its first leaf."""
    if isinstance(around, list):
        return [planted(around[0], value), *around[1:]]
    if isinstance(around, dict):
        first, *rest = around
        return {first: planted(around[first], value), **{name: around[name] for name in rest}}
    return value


@given(around=AROUND, where=st.sampled_from(["inputs", "params"]), claim=st.sampled_from([LOCAL, CLOUD]))
def test_a_claim_at_any_depth_counts(around: Any, where: str, claim: Claim) -> None:
    value = record(**{where: {"x": planted(around, as_value(claim)), "y": as_value(CLOUD)}})
    assert claims_allow(value, in_cloud) == (claim is CLOUD)


def test_what_cannot_be_read_is_not_allowed() -> None:
    assert claims_allow(b"\xff no record", in_cloud), "and none is in it"
    assert not claims_allow(b"\xff dataref", in_cloud)
    assert not claims_allow(record(claim=LOCAL), in_cloud)
    assert claims_allow(record(inputs={"text": "a dataref in words"}), in_cloud)


async def test_the_outlet_refuses_it_cleared_or_not() -> None:
    sink = FakeSink({"cloud.x": 1})
    outlet = started(sink)

    def cleared(claim: Claim) -> Cleared:
        value = record(inputs={"image": as_value(claim)})
        return Cleared(clear(NORMAL, value), Outgoing("cloud.x", b"k", value))

    for output in (cleared(LOCAL), cleared(CLOUD)):
        with pytest.raises(Uncleared, match="not in the cloud's store"):
            outlet.post([output], lambda: None)
    outlet.in_cloud = in_cloud
    with pytest.raises(Uncleared):
        outlet.post([cleared(LOCAL)], lambda: None)
    outlet.post([cleared(CLOUD)], lambda: None)
    await outlet.stop(1.0)

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import ids
from schemas.errors import Malformed

TENANTS = st.none() | st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)
IDS = st.text(min_size=1, max_size=30)


@given(TENANTS, IDS)
def test_scoping_can_be_undone(tenant, request_id):
    assert ids.unscoped(ids.scoped(tenant, request_id)) == (tenant, request_id)


@given(TENANTS, IDS, TENANTS, IDS)
def test_no_two_callers_meet(tenant, request_id, other_tenant, other_id):
    same = ids.scoped(tenant, request_id) == ids.scoped(other_tenant, other_id)
    assert same == ((tenant, request_id) == (other_tenant, other_id))


@given(
    IDS,
    st.text(min_size=1, max_size=20).filter(lambda name: "/" not in name),
    st.sampled_from(["local", "cloud"]),
    st.integers(0, 9),
)
def test_subtask_ids(request_id, step, side, attempt):
    assert ids.parse_subtask_id(ids.subtask_id(request_id, step, side, attempt)) == (
        request_id,
        step,
        side,
        attempt,
    )


@pytest.mark.parametrize(
    "value", ["", "a", "a/b/local", "a/b/edge/0", "a/b/local/x", "a/b/local/-1", "a/b/local/²", "a/b/local/"]
)
def test_others_are_no_subtask_ids(value):
    with pytest.raises(Malformed):
        ids.parse_subtask_id(value)


@given(st.text())
def test_any_text_is_a_subtask_id_or_malformed(text):
    try:
        found = ids.parse_subtask_id(text)
    except Malformed:
        return
    assert text.startswith(found.request)


@pytest.mark.parametrize(
    ("value", "valid"), [("a", True), ("x" * 128, True), ("x" * 129, False), ("é" * 65, False), ("", False)]
)
def test_bounds(value, valid):
    if valid:
        assert ids.check_id(value) == value
    else:
        with pytest.raises(Malformed):
            ids.check_id(value)


def test_derived_ids_are_the_same_after_redelivery_and_differ_elsewhere():
    places = [("requests", 0, 1, 5), ("requests", 1, 1, 5), ("requests", 0, 2, 5), ("requests", 0, 1, 6)]
    found = [ids.derived(*place) for place in places]
    assert found == [ids.derived(*place) for place in places]
    assert len(set(found)) == len(places)


def test_a_conflict_has_a_valid_id_of_its_own():
    found = ids.conflicting("é" * 64, "aa")
    assert ids.check_id(found) != "é" * 64
    assert found != ids.conflicting("é" * 64, "bb")
    for longest in ("😀" * 32, "x" * 128, "é😀" * 21):
        assert 13 < len(ids.conflicting(longest, "aa").encode()) <= ids.MAX_ID_BYTES

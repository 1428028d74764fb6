from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import headers
from schemas.headers import Headers

PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


def test_what_is_built_is_read():
    built = headers.build("plan", "é/1", "edgeway/router", "json", PARENT, "v=1", 1_764_500_000_007)
    assert headers.read(built) == Headers(
        content_type="application/json",
        ce_id="é/1",
        ce_type="edgeway.plan",
        ce_source="edgeway/router",
        ce_time="2025-11-30T10:53:20.007Z",
        traceparent=PARENT,
        tracestate="v=1",
    )
    assert ("ce_specversion", b"1.0") in built


def test_what_is_not_given_is_not_built():
    assert {name for name, _ in headers.build("plan", "a", "edgeway/router")} == {
        "content-type",
        "ce_specversion",
        "ce_type",
        "ce_source",
        "ce_id",
    }


def test_a_list_may_be_changed_without_harm():
    headers.build("plan", "a", "edgeway/router").append(("x", b"y"))
    assert ("x", b"y") not in headers.build("plan", "a", "edgeway/router")


def test_odd_ids_do_not_raise():
    assert headers.build("plan", "\ud800", "edgeway/router", traceparent="é")


@pytest.mark.parametrize("parent", [b"00-zz", b"\xff", b"", PARENT.upper().encode(), PARENT.encode() + b"\n"])
def test_a_malformed_trace_parent_reads_as_absent(parent):
    assert headers.read([("traceparent", parent)]).traceparent is None


def test_names_in_any_case_and_the_first_counts():
    read = headers.read([("Content-Type", b"application/json"), ("content-type", b"x"), ("CE_ID", b"a")])
    assert (read.content_type, read.ce_id) == ("application/json", "a")


def test_overlong_values_read_as_absent():
    assert headers.read([("ce_id", b"x" * 129), ("ce_type", b"x" * 1025)]) == Headers()


@given(st.lists(st.tuples(st.text() | st.sampled_from(Headers._fields), st.none() | st.binary())))
def test_never_raises(pairs):
    assert isinstance(headers.read(pairs), Headers)

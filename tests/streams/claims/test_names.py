"""A dataref never escapes: neither its store nor its tenant."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.claims.errors import ObjectForbidden
from streams.claims.names import base_of, name_in, object_name, prefix_of

BASES = ["file:///srv/objects", "s3://bucket/edge", "memory://x"]
TENANTS = st.none() | st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)
PARTS = st.sampled_from(
    [
        "..",
        ".",
        "",
        "_",
        "a",
        "b",
        "%2e%2e",
        "..%2f",
        "\\",
        "\0",
        "::",
        "?",
        "#",
        "*",
        "a/../..",
        "//",
        "~",
        "é",
    ]
) | st.text(max_size=6)
TAILS = st.lists(PARTS, max_size=6).map("/".join)


@given(base=st.sampled_from(BASES), tail=TAILS, tenant=TENANTS, glue=st.sampled_from(["/", "", "//", "x/"]))
@example(base=BASES[0], tail="_/../../etc/passwd", tenant=None, glue="/")
@example(base=BASES[0], tail="_/%2e%2e/x", tenant=None, glue="/")
@example(base=BASES[0], tail="a/x", tenant=None, glue="/")
@example(base=BASES[1], tail="::file:///etc/passwd", tenant=None, glue="/")
def test_a_dataref_never_escapes(base: str, tail: str, tenant: str | None, glue: str) -> None:
    try:
        name = name_in(base, base + glue + tail, tenant)
    except ObjectForbidden:
        return
    root = "/root/of/store"
    there = posixpath.normpath(posixpath.join(root, name))
    assert there.startswith(f"{root}/{prefix_of(tenant)}/")
    assert there == f"{root}/{name}", "nothing is left to be resolved"
    assert not set(name) & set("%?#*:\\\0 ~[]{}")


@given(dataref=st.text(max_size=80), base=st.sampled_from(BASES))
def test_any_text_is_refused_or_below(dataref: str, base: str) -> None:
    try:
        name = name_in(base, dataref, None)
    except ObjectForbidden:
        return
    assert dataref == f"{base}/{name}"


@given(one=TENANTS, other=TENANTS)
@example(one="_", other=None)
@example(one="..", other="=2E."[1:])
def test_tenants_share_no_folder(one: str | None, other: str | None) -> None:
    assert (prefix_of(one) == prefix_of(other)) == (one == other)
    assert prefix_of(one) not in (".", "..")


@given(tenant=TENANTS, at=st.floats(0, 4e9), token=st.from_regex(r"[a-f0-9]{32}", fullmatch=True))
def test_own_names_are_accepted(tenant: str | None, at: float, token: str) -> None:
    name = object_name(tenant, at, token)
    for base in BASES:
        assert name_in(base, f"{base}/{name}", tenant) == name


@pytest.mark.parametrize("tenant", ["", "a/b", "a\n", "x" * 65, "é"])
def test_what_is_no_tenant_has_no_folder(tenant: str) -> None:
    with pytest.raises(ObjectForbidden):
        prefix_of(tenant)


def test_a_base_of_one_store_is_not_that_of_a_longer_name() -> None:
    with pytest.raises(ObjectForbidden):
        name_in("s3://bucket/edge", "s3://bucket/edge2/_/20260101/x", None)
    assert base_of("s3://bucket/edge///") == "s3://bucket/edge"

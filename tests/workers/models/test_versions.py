"""Names of models and the order of their versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.errors import RepositoryError
from workers.models.versions import check_name, in_order, is_name, next_number, order

SORTED = [
    ["1", "2", "10"],
    ["1.2", "1.2.0", "1.2.1", "1.10.0"],
    ["1.0-rc1", "1.0-rc2", "1.0-rc10", "1.0"],
    ["2023-12-31", "2024-01-31", "2024-02-01"],
    ["v1", "v2", "v10"],
]
versions = st.from_regex(r"[0-9a-zA-Z][0-9a-zA-Z.+_-]{0,8}", fullmatch=True)


@pytest.mark.parametrize("wanted", SORTED)
def test_versions_are_in_the_order_that_people_mean(wanted: list[str]) -> None:
    assert in_order(reversed(wanted)) == wanted


@given(st.lists(versions, unique=True))
def test_any_versions_have_one_order(found: list[str]) -> None:
    assert in_order(found) == in_order(reversed(in_order(found)))
    assert len({order(version) for version in found}) == len(found)


@given(st.integers(0, 10**20), st.integers(0, 10**20), st.sampled_from([".", "-", "_"]))
def test_numbers_are_compared_as_numbers(low: int, high: int, mark: str) -> None:
    low, high = sorted((low, high))
    assert order(f"1{mark}{low}")[0] <= order(f"1{mark}{high}")[0]


@given(st.lists(versions))
def test_the_next_number_is_new(found: list[str]) -> None:
    assert next_number(found) not in found


BAD = [
    "",
    ".",
    "..",
    "a/b",
    "../a",
    ".hidden",
    "a..b",
    "a\\b",
    "a b",
    "a\n",
    "-a",
    "ä",
    "a" * 65,
    "a\x00",
    "a.",
]


@pytest.mark.parametrize("name", BAD)
def test_what_could_lead_out_of_the_folder_is_no_name(name: str) -> None:
    assert not is_name(name)
    with pytest.raises(RepositoryError, match="cannot be a folder"):
        check_name(name)


@given(st.text(max_size=70))
def test_a_name_is_one_folder_below(name: str) -> None:
    if is_name(name):
        assert check_name(name) == name
        assert not {"/", "\\", "\0"} & set(name)
        assert name.isascii()
        assert name[0] != "."

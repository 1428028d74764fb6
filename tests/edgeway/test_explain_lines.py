"""Requests in files: objects, arrays and lines; none lost, little of it in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeway.errors import UsageError
from edgeway.explain_lines import Piece, pieces
from schemas.limits import MAX_RECORD_BYTES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\u4e2d ", max_size=3), inner),
    max_leaves=5,
)
REQUESTS = st.lists(
    st.dictionaries(st.text("ab\u4e2d ", max_size=3), JSON, max_size=4), min_size=1, max_size=6
)


def of(text: str | bytes) -> list[Piece]:
    raw = text.encode() if isinstance(text, str) else text
    return list(pieces(io.BytesIO(raw)))


def values(found: list[Piece]) -> list[Any]:
    return [json.loads(piece.raw) for piece in found]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(REQUESTS, st.sampled_from([None, 1, 4]), st.sampled_from(["", "\ufeff", "\n \n"]))
def test_an_array_gives_its_elements(asked: list[Any], indent: int | None, before: str) -> None:
    found = of(before + json.dumps(asked, indent=indent, ensure_ascii=False))
    assert values(found) == asked
    assert [piece.number for piece in found] == list(range(1, len(asked) + 1))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(REQUESTS, st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_lines_give_a_request_each(asked: list[Any], end: str) -> None:
    text = end.join(json.dumps(one, ensure_ascii=False) for one in asked)
    found = of(text)
    assert values(found) == asked
    assert [text.encode().split(b"\n")[piece.number - 1].strip() for piece in found] == [
        piece.raw for piece in found
    ]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text("ab", min_size=1, max_size=3), JSON, max_size=4))
def test_an_object_over_several_lines_is_one_request(asked: dict[str, Any]) -> None:
    assert values(of(json.dumps(asked, indent=2))) == [asked]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", []),
        ("\n\n", []),
        ("[]", []),
        ("no json\n{}\n", [1, 2]),
        ('{"a":\n{}\n{}\n', [1, 2, 3]),
        ("[1,\n{}\n", [1, 2]),
        ("{}\n[\n{}", [1, 2, 3]),
        ("{}{}", [1]),
    ],
)
def test_what_is_broken_stays_in_its_place(text: str, numbers: list[int]) -> None:
    assert [piece.number for piece in of(text)] == numbers


def test_a_line_too_long_is_cut_and_the_next_is_whole() -> None:
    found = of(b'{"a": 1}\n' + b"x" * (9 * MAX_RECORD_BYTES) + b'\n{"b": 2}\n')
    assert [piece.number for piece in found] == [1, 2, 3]
    assert len(found[1].raw) == 2 * MAX_RECORD_BYTES
    assert found[2].raw == b'{"b": 2}'


@pytest.mark.parametrize("first", [b'{"a": "', b'["'])
def test_a_first_line_too_long_is_one_line(first: bytes) -> None:
    found = of(first + b"x" * (3 * MAX_RECORD_BYTES) + b'\n{"b": 2}\n{"c": 3}\n')
    assert [piece.number for piece in found] == [1, 2, 3]
    assert found[2].raw == b'{"c": 3}'


@pytest.mark.parametrize("first", [b'{"a": "', b"no json ", b'["a"] ', b"   "])
def test_a_first_line_beyond_what_is_read_whole_is_one_line(first: bytes, monkeypatch: Any) -> None:
    monkeypatch.setattr("edgeway.explain_lines.MOST_WHOLE", 3 * MAX_RECORD_BYTES)
    found = of(b"\n" + first + b" " * (8 * MAX_RECORD_BYTES) + b'x\n{"b": 2}\n')
    assert [piece.number for piece in found if piece.raw != b"x"][-1] == 3
    assert found[-1].raw == b'{"b": 2}'
    assert len(found) <= 2


def test_lines_go_on_behind_what_was_read_whole(monkeypatch: Any) -> None:
    monkeypatch.setattr("edgeway.explain_lines.MOST_WHOLE", 100)
    lines = [b'{"a":', *(b'{"b": %d}' % number for number in range(50))]
    assert [piece.raw for piece in of(b"\n".join(lines))] == lines


@pytest.mark.parametrize("end", [b"\n", b""])
def test_an_array_too_long_to_be_read_whole_is_refused(end: bytes, monkeypatch: Any) -> None:
    monkeypatch.setattr("edgeway.explain_lines.MOST_WHOLE", 3 * MAX_RECORD_BYTES)
    one = b'{"a": "' + b"x" * 1000 + b'"}'
    with pytest.raises(UsageError, match="give one request a line"):
        of(b"[" + end + (one + b"," + end) * (3 * MAX_RECORD_BYTES // 1000) + one + b"]")


def test_a_long_array_in_one_line_is_whole() -> None:
    asked = [{"text": "x" * 1000}] * 5000
    assert values(of(json.dumps(asked))) == asked


def test_lines_are_given_as_they_come() -> None:
    given: list[int] = []

    class Slow(io.RawIOBase):
        def readline(self, size: int | None = -1, /) -> bytes:
            given.append(1)
            return b'{"task": "t"}\n' if len(given) < 1000 else b""

    found: Iterator[Piece] = pieces(Slow())  # type: ignore[arg-type]
    next(found)
    next(found)
    assert len(given) <= 3


@pytest.mark.parametrize("deep", ['{"a":' * 3000 + "1" + "}" * 3000, "[" * 3000 + "]" * 3000])
def test_a_line_nested_too_deep_leaves_the_others(deep: str) -> None:
    assert [piece.raw for piece in of(deep + '\n{"b": 2}\n')] == [deep.encode(), b'{"b": 2}']
    assert [piece.raw for piece in of('{"b": 2}\n' + deep)] == [b'{"b": 2}', deep.encode()]

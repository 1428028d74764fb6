"""What a caller is told of an exception."""

from __future__ import annotations

import pytest

from workers.errors import BadInput, BadOutput, failure_of, where


def refuse(value: str) -> None:
    if value == "literal":
        raise ValueError("text must not be empty")
    if value == "contract":
        raise BadInput("give a text of at most 512 words")
    if value == "output":
        raise BadOutput("the output is no map")
    if value == "quoting":
        raise ValueError(f"cannot read {value}-4111111111111111")
    if value == "builtin":
        int("4111 1111 1111 1111")
    raise RuntimeError(f"connection for {value} 4111111111111111 lost")


@pytest.mark.parametrize(
    ("value", "code", "told"),
    [
        ("literal", "bad_input", "text must not be empty"),
        ("contract", "bad_input", "at most 512 words"),
        ("output", "bad_output", "no map"),
        ("quoting", "bad_input", "ValueError"),
        ("builtin", "bad_input", "ValueError"),
        ("other", "backend_error", "RuntimeError"),
    ],
)
def test_the_message_never_quotes_the_payload(value: str, code: str, told: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - several kinds on purpose
        refuse(value)
    failure = failure_of(caught.value, "nlp/x")
    assert failure.code == code
    assert told in failure.message
    assert failure.message.startswith("nlp/x")
    assert "4111" not in failure.message
    assert "in refuse" in where(caught.value)

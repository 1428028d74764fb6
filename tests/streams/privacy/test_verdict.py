from __future__ import annotations

import asyncio
import logging

import pytest

from schemas.messages import Request, Verdict
from streams.privacy.verdict import declared, verdict_of


def test_declared():
    assert declared(Request()).level == "normal"
    assert declared(Request(privacy="high")) == Verdict(level="high", reasons=("declared",))


def test_a_verdict_is_never_below_the_declared_level():
    assert verdict_of(Request(privacy="high"), lambda _: Verdict()).level == "high"


@pytest.mark.parametrize("error", [RuntimeError(), SystemExit(3), asyncio.CancelledError(), BaseException()])
def test_whatever_a_judge_raises_means_high(error: BaseException):
    def fails(request: Request) -> Verdict:
        raise error

    assert verdict_of(Request(), fails).reasons == ("verdict_failed",)


def test_the_keyboard_is_heard_while_a_judge_works():
    def interrupted(request: Request) -> Verdict:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verdict_of(Request(), interrupted)


def test_a_judge_that_fails_means_high_and_its_words_are_not_logged(caplog):
    def fails(request: Request) -> Verdict:
        raise ValueError(f"cannot read {request.inputs}")

    with caplog.at_level(logging.ERROR):
        assert verdict_of(Request(inputs={"text": "secret"}), fails).level == "high"
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text

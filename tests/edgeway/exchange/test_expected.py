"""What was sent and may be answered."""

from __future__ import annotations

from edgeway.exchange.expected import KEEP_MS, Expected


def test_a_request_is_open_until_it_or_its_conflict_is_answered() -> None:
    expected = Expected()
    for key in (b"a", b"b"):
        expected.add(key, key + b"~", 1)
    assert b"a" in expected
    assert b"a~" in expected
    assert expected.open == 2
    expected.answered(b"a")
    expected.answered(b"b~")
    assert expected.open == 0
    assert not expected.is_open(b"b")
    # A conflict may still come.
    assert b"a~" in expected


def test_what_is_old_is_forgotten_but_not_what_was_sent_again() -> None:
    expected = Expected()
    expected.add(b"a", b"a~", 0)
    expected.add(b"b", b"b~", 0)
    expected.add(b"a", b"a~", KEEP_MS)
    expected.forget(KEEP_MS + 1)
    assert b"b" not in expected
    assert not expected.is_open(b"b")
    assert expected.is_open(b"a")
    assert expected.sent_at(b"a") == 0
    assert b"a~" in expected
    expected.forget(2 * KEEP_MS + 1)
    assert b"a" not in expected
    assert b"a~" not in expected


def test_it_is_bounded() -> None:
    expected = Expected(most=10)
    for number in range(100):
        expected.add(b"%d" % number, b"%d~" % number, number)
    assert expected.open == 10
    assert b"89" not in expected
    assert b"99" in expected

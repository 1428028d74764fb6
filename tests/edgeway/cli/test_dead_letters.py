"""`edgeway dead-letters` before any Kafka: what its flags may be."""

from __future__ import annotations

import pytest

from edgeway.cli import main

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["replay"], "name the PLACEs to replay, or give --all"),
        (["replay", "0/1", "--all"], "name the PLACEs to replay, or give --all"),
        (["replay", "0"], "'0' is no place"),
        (["show", "requests/0/1"], "is no place; give PARTITION/OFFSET"),
    ],
)
def test_what_it_refuses(argv: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dead-letters", *argv, "--kafka", NOWHERE]) == 2
    assert why in capsys.readouterr().err


def test_no_verb_is_usage() -> None:
    with pytest.raises(SystemExit) as end:
        main(["dead-letters"])
    assert end.value.code == 2

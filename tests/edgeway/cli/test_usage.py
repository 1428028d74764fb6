"""The first line of each command's help."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from edgeway.cli import parser


def parsers(of: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in of._actions:
        for inner in action.choices.values() if isinstance(action, argparse._SubParsersAction) else ():
            yield inner
            yield from parsers(inner)


@pytest.mark.parametrize("found", list(parsers(parser())), ids=lambda found: found.prog)
def test_the_usage_names_what_a_command_takes(found: argparse.ArgumentParser) -> None:
    for action in found._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        if action.option_strings:
            names = action.option_strings[:1] if action.required else []
        else:
            names = [str(action.metavar)] if action.metavar else list(action.choices or ())
        assert all(name in found.format_usage() for name in names)

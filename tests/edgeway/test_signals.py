"""A command that is told to stop ends in order, also before it hears signals itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from edgeway.signals import obeyed_at_once, stopping

SLEEPER = """
import asyncio, signal, sys
from edgeway.signals import run

async def main():
    print("runs", flush=True)
    try:
        await asyncio.sleep(20)
    finally:
        print("tidied", flush=True)
    return 1

sys.exit(run(main(), 7))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_starting_ends_in_order(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "runs\n"
        os.kill(child.pid, number)
        assert child.stdout.read() == "tidied\n"
        assert child.wait(10) == 7


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert signal.SIGHUP not in stopping()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert signal.SIGHUP in stopping()
    finally:
        signal.signal(signal.SIGHUP, before)


IMPORTER = """
import sys, time
from edgeway.signals import obeyed_at_once, run

async def main():
    with obeyed_at_once(7):
        print("imports", flush=True)
        time.sleep(20)
    return 1

sys.exit(run(main(), 5))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 7), (signal.SIGHUP, 7), (signal.SIGINT, 130)])
def test_a_signal_during_a_long_import_is_obeyed_at_once(number: signal.Signals, code: int) -> None:
    with subprocess.Popen([sys.executable, "-c", IMPORTER], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "imports\n"
        os.kill(child.pid, number)
        assert child.wait(5) == code


def test_afterwards_signals_are_heard_as_before() -> None:
    before = [signal.getsignal(number) for number in stopping()]
    with obeyed_at_once(7):
        assert all(signal.getsignal(n) is not known for n, known in zip(stopping(), before, strict=True))
    assert [signal.getsignal(number) for number in stopping()] == before

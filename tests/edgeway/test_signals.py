"""A command that is told to stop ends in order, also before it hears signals itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from edgeway.signals import stopping

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

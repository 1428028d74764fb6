"""A command ends, whatever the code that it served has left."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

PROGRAM = """
import concurrent.futures, multiprocessing, sys, threading, time
from edgeway import ending

pool = concurrent.futures.ThreadPoolExecutor(1)
if sys.argv[1] == "pool":
    pool.submit(time.sleep, 60)
elif sys.argv[1] == "thread":
    threading.Thread(target=time.sleep, args=(60,), name="left", daemon=False).start()
elif sys.argv[1] == "process":
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(5,), name="left").start()
if sys.argv[2] == "armed":
    ending.arm()
ending.end_within(7, 0.5)
if sys.argv[1] == "busy":
    time.sleep(1.5)
sys.exit(7 if sys.argv[2] == "armed" else 8)
"""


@pytest.mark.parametrize(
    ("left", "named"), [("pool", "ThreadPoolExecutor"), ("thread", "left"), ("process", "left"), ("none", "")]
)
def test_what_is_left_keeps_no_command_from_ending(left: str, named: str) -> None:
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, left, "armed"],
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.returncode == 7
    # The process that was left has the pipe, and so the reading of it ends with it.
    assert time.monotonic() - began < (10 if left == "process" else 4)
    assert named in ran.stderr
    assert ("ended over" in ran.stderr) == (left != "none")


def test_a_process_that_is_nobodys_command_is_let_live() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM, "busy", "not"], timeout=30, check=False)
    assert ran.returncode == 8


INTERRUPTED = """
import asyncio, os, signal
from edgeway import ending

async def deaf():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

async def work():
    task = asyncio.create_task(deaf())
    asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGINT)
    await asyncio.sleep(60)

ending.arm()
ending.INTERRUPTED_S = 0.3
asyncio.run(ending.ending(work()))
"""


def test_an_interrupted_command_ends_though_a_task_swallows_its_cancellation() -> None:
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED], timeout=20, check=False, capture_output=True)
    assert ran.returncode == 130

"""Work off the loop keeps no process from ending, and every end of it is told."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import pytest

from edgeway.aside import aside


async def test_what_it_gives_and_what_it_raises() -> None:
    assert await aside(lambda: 5, "test") == 5
    with pytest.raises(ZeroDivisionError):
        await aside(lambda: 1 / 0, "test")


@pytest.mark.parametrize("error", [SystemExit(3), StopIteration(), KeyboardInterrupt()])
async def test_an_end_that_a_future_cannot_hold_is_told(error: BaseException) -> None:
    def work() -> Any:
        raise error

    with pytest.raises(RuntimeError, match=type(error).__name__):
        await aside(work, "test")


def test_a_process_ends_while_work_hangs() -> None:
    program = """
        import asyncio, time
        from edgeway.aside import aside

        async def main():
            await asyncio.wait({aside(lambda: time.sleep(60), "test")}, timeout=0.05)

        asyncio.run(main())
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=20)

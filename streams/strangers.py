"""What code that is not ours may raise."""

from __future__ import annotations

from asyncio import CancelledError

RAISED = (Exception, SystemExit, GeneratorExit, CancelledError)
"""Whatever a detector, decomposer or merge strategy raises. All are called without an await, so that none of
these is a wish to end us: one request whose decomposer called `sys.exit` ended every router that read it.
KeyboardInterrupt is left out, for the one at the keyboard.
"""

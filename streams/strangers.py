"""What code that is not ours may raise."""

from __future__ import annotations

RAISED = BaseException
"""Whatever a detector, decomposer or merge strategy raises. All are called without an await, so that none of
these is a wish to end us: one request whose decomposer called `sys.exit` ended every router that read it,
and so did a panic of an extension written in Rust, which is no Exception either. KeyboardInterrupt goes on
where a command may have been told so from the keyboard; a role hears that from its loop.
"""

"""The collector's setting, in a process of its own."""

import subprocess
import sys

LINES = """
import gc, weakref
from edgeway.roles import collector

class Knot:
    pass

collector.settle()
assert gc.get_freeze_count() > 0
knot = Knot()
knot.me = knot
gone = weakref.ref(knot)
del knot
kept = []
for number in range(30 * collector.YOUNG):
    kept.append([number])
assert gone() is None, "a cycle made after the start is never found"
"""


def test_cycles_made_after_the_start_are_still_found() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LINES], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr

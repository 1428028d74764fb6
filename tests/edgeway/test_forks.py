"""Forks of a process hold neither its port nor its slot."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
import multiprocessing, os, socket, sys, time
from pathlib import Path
from edgeway import forks
from edgeway.roles.slots import hold

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
address = listener.getsockname()
if sys.argv[1] == "kept":
    forks.keep(listener.fileno)
slot = hold(("x",), Path(sys.argv[2]))
child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(20,))
child.start()
time.sleep(0.3)
listener.close()
os.close(slot.descriptor)
again = socket.socket()
again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    again.bind(address)
    again.listen()
    print("free", hold(("x",), Path(sys.argv[2])).name == slot.name)
except OSError:
    print("taken")
finally:
    child.kill()
"""


@pytest.mark.parametrize(("how", "told"), [("kept", "free True"), ("not", "taken")])
def test_what_is_kept_is_free_again_though_a_child_lives_on(tmp_path: Path, how: str, told: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, how, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ran.stdout.strip(), ran.stderr) == (told, "")


def test_a_forks_own_files_are_its_own_and_the_parent_keeps_what_it_has() -> None:
    program = """
        import os, tempfile
        from edgeway import forks

        kept, other = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        forks.keep(kept.fileno)
        forks.keep(lambda: -1)
        child = os.fork()
        if child == 0:
            kept.close()
            own = open(os.devnull)
            other.write(b"child")
            other.flush()
            os._exit(0 if os.fstat(own.fileno()) else 1)
        _, status = os.waitpid(child, 0)
        kept.write(b"parent")
        kept.seek(0)
        other.seek(0)
        print(status, kept.read(), other.read())
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=30,
        env=os.environ,
        check=False,
    )
    assert (ran.stdout.strip(), ran.stderr) == ("0 b'parent' b'child'", "")

"""The command line where its streams, ports, folders or numbers cannot be used: one line, never a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgeway.cli import main, output
from edgeway.cli.arguments import back, duration, moment
from edgeway.cli.role import require_free
from edgeway.embedded.command import broker
from edgeway.errors import HostUnusable, OutputLost

ROOT = Path(__file__).parents[3]
NOWHERE = "127.0.0.1:1"


def shell(line: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", line.replace("edgeway ", f"{sys.executable} -m edgeway ")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **env},
    )


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["up", "--broker-port", "99999"], "port 99999 is out of range"),
        (["up", "--broker-port", "-1"], "port -1 is out of range"),
        (["up", "--broker-port", "0"], "port 0 is out of range"),
        (["broker", "--port", "0"], "port 0 is out of range"),
        (["up", "--host", "192.0.2.1", "--port", "18082"], "--host 192.0.2.1"),
        (["up", "--host", "nosuch.invalid", "--port", "18082"], "--host nosuch.invalid"),
        (["send", "--task", "t", "--deadline-ms", "0"], "--deadline-ms 0: give 1 to 600000"),
        (["demo", "--json", "/"], "--json /: cannot be written"),
        (["demo", "--json", "/nosuch/figures.json"], "cannot be written"),
    ],
)
def test_what_cannot_be_used_is_usage(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert words in capsys.readouterr().err


def test_a_data_folder_that_cannot_be_used_is_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    for data, words in ((file, "is no folder"), (tmp_path / "full", "is not empty")):
        assert broker(str(data), None) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("host", ["192.0.2.1", "nosuch.invalid", "a" * 70 + ".invalid", "::2:3"])
def test_addresses_of_others_are_refused(host: str) -> None:
    with pytest.raises(HostUnusable, match="cannot listen on --host"):
        require_free(host, 18083)


def test_the_writability_of_the_figures_file_leaves_what_is_there(tmp_path: Path) -> None:
    from edgeway.demo.command import _require_writable

    there, new = tmp_path / "there", tmp_path / "new"
    there.write_text("figures")
    _require_writable(there)
    _require_writable(new)
    assert there.read_text() == "figures"
    assert not new.exists()


def test_closed_streams_are_told_of_in_a_line() -> None:
    for command in ("results", "audit", "send --task t --wait", "topics check", "broker"):
        done = shell(f"edgeway {command} >&-")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "standard output is closed" in done.stderr
    done = shell(f"edgeway send --kafka {NOWHERE} --file - <&-")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert shell(f"edgeway results --kafka {NOWHERE} 2>&-").returncode == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told_of_in_a_line() -> None:
    code = (
        "import sys; from edgeway import cli\n"
        "from edgeway.cli import results\n"
        "from edgeway.cli.output import out\n"
        "results.run = lambda args: out('a result')\n"
        "sys.exit(cli.main(['results']))\n"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == (
        "edgeway: standard output cannot be written: No space left on device; "
        "send it somewhere else, or to /dev/null\n"
    )


def test_characters_that_a_stream_does_not_have_are_escaped() -> None:
    line = f"edgeway results --kafka {NOWHERE} --config 漢字-😀"
    done = shell(line, PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "\\u6f22\\u5b57-\\U0001f600" in done.stderr
    code = "from edgeway.cli.output import *; prepare_streams(); out('漢😀'); out_json({'a': '漢😀'})"
    encoded = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert encoded.stdout.splitlines() == ["\\u6f22\\U0001f600", '{"a": "\\u6f22\\ud83d\\ude00"}']


def test_output_without_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OutputLost, match="closed"):
        output.out("x")


def test_times_are_within_what_kafka_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert back(1_000, duration("99999999999h")) == 0
    assert back(10_000, duration("1s")) == 9_000
    for flags in (["results", "--since", "9" * 400 + "h"], ["audit", "--from", "9" * 30]):
        with pytest.raises(SystemExit) as end:
            main(flags)
        assert end.value.code == 2
    with pytest.raises(SystemExit):
        main(["results", "--since", "-5m"])
    assert "'-5m' is no duration" in capsys.readouterr().err
    assert moment("2026-01-31T12:00+00:00") == 1_769_860_800_000


def test_an_early_interruption_is_quiet() -> None:
    """At any moment from the first of our own lines on."""
    for wait in (0.0, 0.02, 0.1):
        child = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "edgeway", "results", "--kafka", NOWHERE],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stderr is not None
        # Its first own import: the handler stands.
        for line in child.stderr:
            if "argparse" in line:
                break
        time.sleep(wait)
        child.send_signal(signal.SIGINT)
        said = child.stderr.read()
        child.stderr.close()
        assert child.wait(30) in (130, 3)
        assert "Traceback" not in said

"""The command line without Kafka: flags, errors, exit codes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeway import roles
from edgeway.cli import main, parser
from edgeway.cli.show import full, short
from edgeway.embedded import EmbeddedKafka
from edgeway.errors import EXIT_TEXT
from schemas.messages import Decision, Failure, Result, Timings
from streams.settings import Settings

ROOT = Path(__file__).parents[3]
NOWHERE = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("EDGEWAY_KAFKA", "EDGEWAY_CONFIG", "EDGEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_every_command_is_there_and_tells_its_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    for name in (
        "up",
        "router",
        "aggregator",
        "worker",
        "send",
        "results",
        "demo",
        "broker",
        "audit",
        "explain",
        "backtest",
    ):
        with pytest.raises(SystemExit) as end:
            main([name, "--help"])
        assert end.value.code == 0
        assert "3  Kafka cannot be reached" in capsys.readouterr().out
    for verb in ("apply", "check"):
        with pytest.raises(SystemExit):
            main(["topics", verb, "--help"])
        assert "--rules FILE" in capsys.readouterr().out


def _refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["up", "--broker-port", "1", *words]) == 2
    return capsys.readouterr().err


def test_up_finds_what_is_wrong_before_it_starts_a_kafka(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(EmbeddedKafka, "start_sync", lambda _: pytest.fail("a Kafka was started"))
    strange = tmp_path / "rules.json"
    strange.write_text('{"tasks": {"t": {"merge": {"strategy": "bar"}}}}', encoding="utf-8")
    text = tmp_path / "README.md"
    text.write_text("# no rules", encoding="utf-8")
    assert "no merge strategy 'bar'; there are collect" in _refused(capsys, "--rules", str(strange))
    assert "README.md" in _refused(capsys, "--rules", str(text))
    assert "is a folder" in _refused(capsys, "--rules", str(tmp_path))
    assert "nope.py is not found" in _refused(capsys, "--app", "nope.py")
    assert "name one with --app" in _refused(capsys, "--capabilities", "local/foo")
    port = ("--port", "18085", "--broker-port", "18083", "--brokers", "3")
    assert "--port 18085 is a port of the embedded Kafka" in _refused(capsys, *port)


def test_up_says_what_a_named_kafka_makes_of_its_other_flags(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("EDGEWAY_KAFKA", NOWHERE)
    assert main(["up", "--data", str(tmp_path / "d"), "--broker-port", "5000", "--brokers", "1"]) == 3
    said = capsys.readouterr().err
    assert "--brokers, --broker-port, --data are ignored: EDGEWAY_KAFKA names a Kafka" in said
    assert "EDGEWAY_KAFKA keeps `up` from starting a Kafka of its own" in said
    assert main(["up", "--kafka", NOWHERE]) == 3
    said = capsys.readouterr().err
    assert "ignored" not in said
    assert "--kafka keeps `up` from" in said


def test_commands_that_talk_to_kafka_take_it_and_those_with_rules_take_them() -> None:
    for name in ("up", "router", "aggregator", "worker", "topics apply", "topics check"):
        args = parser().parse_args([*name.split(), "--kafka", "a:1", "--rules", "r.json"])
        assert (args.setting_kafka, args.setting_rules) == ("a:1", "r.json")
    for name in ("send", "results", "audit"):
        assert parser().parse_args([name, "--kafka", "a:1"]).setting_kafka == "a:1"


@pytest.mark.parametrize(
    "argv",
    [[], ["nothing"], ["send", "--kafk", "a:1"], ["audit", "--since", "soon"], ["send", "--rate", "0"]],
)
def test_wrong_flags_are_usage(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(argv)
    assert end.value.code == 2


def test_wrong_settings_name_their_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "edgeway.toml").write_text("\nslott = 'a'\n")
    assert main(["send", "--kafka", "nonsense", "--task", "t"]) == 2
    said = capsys.readouterr().err
    assert "--kafka = 'nonsense'" in said
    assert "edgeway.toml:2: slott is no setting; did you mean slot?" in said


@pytest.mark.parametrize(
    "argv",
    [
        ["send", "--task", "t"],
        ["results"],
        ["audit"],
        ["topics", "apply"],
        ["topics", "check"],
        ["send", "--file", "f"],
    ],
)
def test_no_kafka_is_three_and_says_what_to_check(
    argv: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "f").write_text('{"task": "t"}\n')
    assert main([*argv, "--kafka", NOWHERE]) == 3
    said = capsys.readouterr().err
    assert f"Kafka at {NOWHERE} cannot be reached" in said
    assert "refused" in said or "Connect call failed" in said
    assert "edgeway broker" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["send"], "--task NAME"),
        (["send", "--file", "none.jsonl"], "cannot be read"),
        (["send", "--file", "-", "--task", "t"], "leave out"),
        (["audit", "--since", "1h", "--from", "2026-01-01"], "not both"),
        (["audit", "--from", "2026-01-02", "--to", "2026-01-01"], "ends before it begins"),
        (["worker"], "a worker of nothing"),
    ],
)
def test_flags_that_do_not_go_together(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*argv, "--kafka", NOWHERE])
    said = capsys.readouterr().err
    assert code == 2
    assert words in said


def test_rules_that_are_refused_are_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text('{"tasks": {"a": {"sied": "local"}}}')
    assert main(["topics", "check", "--kafka", NOWHERE, "--rules", "rules.json"]) == 2
    assert "rules.json: " in capsys.readouterr().err


def test_a_taken_port_is_told_before_anything_else(taken: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["router", "--kafka", NOWHERE, "--port", str(taken)]) == 2
    assert f"port {taken} on 127.0.0.1 is taken" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["router"], "run_router"),
        (["aggregator"], "run_aggregator"),
        (["worker", "--side", "local"], "run_worker"),
    ],
)
def test_role_commands_hand_their_settings_on(
    argv: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Settings] = []

    def run(settings: Settings, **_: bool) -> int:
        seen.append(settings)
        return 7

    monkeypatch.setattr(roles, name, run)
    assert main([*argv, "--kafka", "a:1", "--slot", "s0"]) == 7
    assert (seen[0].kafka, seen[0].slot) == ("a:1", "s0")


def test_interruption_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(settings: Settings) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(roles, "run_router", run)
    assert main(["router"]) == 130


def test_help_is_quick_and_loads_no_heavy_package() -> None:
    code = (
        "import sys; from edgeway.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'onnxruntime', 'faust', 'aiokafka', 'numpy', 'rich', 'redis'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 10
    assert "exit codes:" in done.stdout


def test_a_process_ends_with_the_code_and_without_a_trace() -> None:
    argv = [
        sys.executable,
        "-m",
        "edgeway",
        "send",
        "--kafka",
        NOWHERE,
        "--task",
        "t",
        "--log-format",
        "json",
    ]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("edgeway: Kafka at")


def test_results_for_people() -> None:
    result = Result(
        id="r1",
        status="ok",
        output={"intent": "卡"},
        confidence=0.97,
        sides={"intent": "cloud"},
        timings={"intent": Timings(total_ms=35)},
        warnings=("possibly inaccurate (可能不准确)",),
        decisions=(Decision(step="intent", side="cloud", rule="fixed_side"),),
    )
    assert short(result) == f"r1  ok  cloud  35 ms  {json.dumps({'intent': '卡'}, ensure_ascii=False)}"
    assert full(result) == [
        "r1: ok, confidence 0.97 (intent by the cloud)",
        '  output: {"intent": "卡"}',
        "  warning: possibly inaccurate (可能不准确)",
        "  - Step intent went to the cloud: the rules name this side.",
    ]
    failed = Result(
        id="r2", status="error", error=Failure(code="overloaded", message="too many open requests")
    )
    assert short(failed) == "r2  error  -  -  too many open requests"
    assert short(Result(id="r3", status="ok", output=b"123")).endswith('"<3 bytes>"')


def test_the_page_of_commands_has_every_exit_code_and_command() -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    for code, text in EXIT_TEXT.items():
        assert f"| {int(code)} | {text} |" in page
    for name in (
        "up",
        "demo",
        "broker",
        "topics apply",
        "topics check",
        "router",
        "send",
        "results",
        "explain",
        "backtest",
        "audit",
    ):
        assert f"`edgeway {name}" in page

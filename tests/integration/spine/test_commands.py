"""The commands of a user beside running roles: send, results, audit; and the doors of a role."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.caller import new_id
from tests.helpers.roles import command, edgeway, fetch
from tests.helpers.spine import Spine
from tests.integration.spine.samples import SURE, SURE_INTENT, UNSURE, UNSURE_INTENT

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("fmt", ["msgpack", "json"])
def test_send_and_wait(spine: Spine, fmt: str) -> None:
    words = ("--task", "intent", "--text", UNSURE, "--wait", "--json", "--format", fmt)
    done = edgeway("send", "--kafka", spine.kafka, *words)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["output"]["intent"], said["sides"]) == (UNSURE_INTENT, {"intent": "cloud"})


def test_send_explains_to_people(spine: Spine) -> None:
    name = new_id()
    done = command("send", "--kafka", spine.kafka, "--task", "intent", "--text", SURE, "--id", name, "--wait")
    assert done.returncode == 0, done.stderr
    assert f"{name}: ok" in done.stdout
    assert SURE_INTENT in done.stdout
    assert "Step intent went to the edge" in done.stdout
    shown = command("results", "--kafka", spine.kafka, "--id", name)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == done.stdout


def test_a_request_sent_again_finds_its_answer(spine: Spine, tmp_path: Path) -> None:
    name = new_id()
    words = ("send", "--kafka", spine.kafka, "--wait", "--timeout", "20s")
    one = ("--task", "intent", "--text", SURE, "--id", name)
    first, again = command(*words, *one), command(*words, *one)
    assert (first.returncode, again.returncode) == (0, 0), again.stderr
    assert "answered before" not in first.stdout
    assert f"{name}: ok" in again.stdout
    assert "answered before" in again.stdout
    file = tmp_path / "again.jsonl"
    file.write_text(json.dumps({"id": name, "task": "intent", "inputs": {"text": SURE}}), encoding="utf-8")
    third = command(*words, "--file", str(file), "--json")
    assert third.returncode == 0, third.stderr
    assert json.loads(third.stdout)["id"] == name
    assert f"these are their results: {name}" in third.stderr
    for _ in range(2):
        other = command(*words, "--task", "intent", "--text", UNSURE, "--id", name)
        assert other.returncode == 1, "a conflict is no earlier answer, and is told again"
        assert f"{name}: error" in other.stdout


def test_an_error_result_has_its_own_exit_code(spine: Spine) -> None:
    done = command("send", "--kafka", spine.kafka, "--task", "intnet", "--text", SURE, "--wait")
    assert done.returncode == 1
    assert "known tasks: intent" in done.stdout


def test_a_file_of_requests(spine: Spine, tmp_path: Path) -> None:
    asked = [{"id": new_id(), "task": "intent", "text": text} for text in (SURE, UNSURE) * 20]
    file = tmp_path / "asked.jsonl"
    file.write_text("\n".join([*map(json.dumps, asked), "{no json"]), encoding="utf-8")
    done = command("send", "--kafka", spine.kafka, "--file", str(file), "--wait", "--json")
    assert done.returncode == 2, done.stderr
    assert "line 41" in done.stderr
    assert "40 sent, 1 bad lines, 0 not acknowledged, 40 answered, 0 of them errors" in done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(result["id"] for result in said) == sorted(request["id"] for request in asked)
    assert {result["status"] for result in said} == {"ok"}


def test_an_audit_finds_all_answered(spine: Spine) -> None:
    test_send_and_wait(spine, "json")
    code, report = spine.audit("--grace", "1ms")
    assert (code, report["unanswered"]) == (0, [])
    assert report["answered"] >= 1


def test_a_role_shows_its_health(spine: Spine) -> None:
    port = spine.roles[0].port
    status, body = fetch(port, "/healthz")
    shown = json.loads(body)
    assert (status, shown["ok"], shown["ready"]) == (200, True, True)
    assert {"edgeway.router", "edgeway.aggregator", "edgeway.local.nlp.intent"} <= set(shown["groups"])
    assert {group["partitions"] for group in shown["groups"].values()} == {3}
    assert fetch(port, "/readyz") == (200, '{"ready":true}')


def test_a_role_counts_what_it_does(spine: Spine) -> None:
    def planned() -> float:
        status, body = fetch(spine.roles[0].port, "/metrics")
        assert status == 200
        lines = [line for line in body.splitlines() if line.startswith("edgeway_requests_total")]
        return sum(float(line.rpartition(" ")[2]) for line in lines if 'outcome="planned"' in line)

    before = planned()
    test_send_and_wait(spine, "json")
    assert planned() >= before + 1

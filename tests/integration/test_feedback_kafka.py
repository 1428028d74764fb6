"""Feedback to its topic, joined with results, into a card, on a real Kafka."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from edgeway import kafka
from edgeway.cli import main
from schemas import codec, ids, topics
from schemas.messages import Model, Result
from streams.settings import Settings
from workers.models.cards import read_card, write_card

pytestmark = pytest.mark.integration
CARD = {"name": "m", "version": "1", "side": "local", "capability": "nlp/intent"}
ANSWERS = 240


def answers() -> list[Result]:
    """Local answers at 0.93, of which 7 in 10 will be called right, and as many of the cloud's."""
    made = []
    for number in range(2 * ANSWERS):
        side, name = ("local", "m") if number < ANSWERS else ("cloud", "big")
        made.append(
            Result(
                id=f"r{number}",
                tenant="shop",
                status="ok",
                confidence=0.93,
                models={"intent": Model(name=name, version="1")},
                sides={"intent": side},  # type: ignore[dict-item]
            )
        )
    return made


async def answered(settings: Settings) -> None:
    async with kafka.producer(settings) as producer:
        for result in answers():
            key = ids.scoped(result.tenant, result.id).encode()
            await producer.send(
                topics.RESULTS, codec.encode(result), key, partition=topics.partition_for(key, 3)
            )
        await producer.flush()


def test_feedback_moves_the_confidence_of_the_model_that_it_is_about(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rules = tmp_path / "rules.json"
    rules.write_text('{"tasks": {"intent": {"capability": "nlp/intent"}}}')
    write_card(tmp_path / "card.json", CARD)
    assert main(["topics", "apply", "--kafka", bootstrap, "--rules", str(rules), "--partitions", "3"]) == 0
    asyncio.run(answered(Settings(kafka=bootstrap)))
    told = [
        {"id": f"r{number}", "tenant": "shop", "verdict": "right" if number % 10 < 7 else "wrong"}
        for number in range(2 * ANSWERS - 1)
    ]
    (tmp_path / "told.jsonl").write_text("".join(json.dumps(said) + "\n" for said in told) + "nonsense\n")
    assert main(["feedback", "--kafka", bootstrap, "--file", "told.jsonl"]) == 2
    assert "1 bad lines left out" in capsys.readouterr().err
    last = f"r{2 * ANSWERS - 1}"
    assert main(["feedback", "--kafka", bootstrap, "--id", last, "--tenant", "shop", "--score", "0.5"]) == 0
    assert main(["feedback", "--kafka", bootstrap, "--id", "unknown", "--wrong", "--label", "other"]) == 0
    capsys.readouterr()

    calibrate = ["models", "calibrate", ".", "--from", "feedback", "--kafka", bootstrap, "--json"]
    before = int(time.time() * 1000)
    assert main(calibrate) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["samples"] == ANSWERS
    assert report["read"]["of_other_models"] == ANSWERS
    assert report["read"]["without_result"] == 1
    assert report["before"]["ece"] == pytest.approx(0.23, abs=0.01)
    assert report["after"]["ece"] < 0.08
    calibration = read_card(tmp_path)["calibration"]
    assert calibration["since_ms"] >= before
    assert calibration["accuracy"] == 0.0, "nothing is accepted at 0.9 any more"

    # The same answers again were given by the calibration of before: they say nothing of the new one.
    assert main(calibrate) == 2
    assert "0 samples" in capsys.readouterr().err

"""What workers can do, from their heartbeats or from an app."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgeway.capabilities import named, of_app, of_beats, summary, whole
from edgeway.capabilities_text import page, table
from edgeway.cli import main
from edgeway.explain_live import Beats
from schemas.cards import Calibration, Card, Heartbeat, Live, Offer
from streams.registry import SILENT_MS

NOW = 1_000_000
APP = '''
from workers.sdk import capability

@capability("local/nlp/summarize", cost=0.5, qps=20, licence="MIT", source="own", quality="none measured")
def summarize(text: str, sentences: int = 3) -> tuple[dict[str, str], float]:
    """The sentences that say most.

    `sentences` is how many.
    """
    return {"summary": text}, 0.5

@capability("cloud/nlp/summarize", cost_per_token=0.01)
def larger(text: str) -> str:
    return text
'''


def offer(side: str = "local", *, live: dict[str, Any] | None = None, **fields: Any) -> Offer:
    base: dict[str, Any] = {"capability": "nlp/intent", "side": side, "version": "1", "model": "m"}
    return Offer(card=Card(**base | fields), live=Live(**live or {}))


def beats(**offers: tuple[Offer, ...]) -> Beats:
    every = tuple((NOW, Heartbeat(worker=worker, offers=made)) for worker, made in offers.items())
    return Beats(every, NOW)


def test_workers_are_summed_by_side_and_name() -> None:
    found = of_beats(
        beats(
            a=(offer(live={"p50_ms": 10.0, "p90_ms": 20.0, "served": 100, "queue": 2}, max_qps=10.0),),
            b=(
                offer(
                    live={"p50_ms": 30.0, "p90_ms": 40.0, "served": 100, "busy_ms": 5000.0},
                    version="2",
                    max_qps=5.0,
                ),
                offer("cloud", cost_per_call=0.5, max_cost=0.5, live={"provider": "CPUExecutionProvider"}),
            ),
        )
    )
    assert [each.name for each in found] == ["cloud/nlp/intent", "local/nlp/intent"]
    facts = summary(found[1])
    assert (facts["versions"], facts["workers"], facts["queue"]) == (["1", "2"], 2, 2)
    assert (facts["p50_ms"], facts["p90_ms"], facts["max_qps"]) == (20.0, 30.0, 15.0)
    assert facts["busy_ms"] == 5000.0
    assert summary(found[0])["providers"] == ["CPUExecutionProvider"]
    assert [workers for _, workers in found[1].cards] == [["a"], ["b"]]


def test_a_worker_that_left_or_fell_silent_is_not_shown() -> None:
    left = Heartbeat(worker="a", offers=(offer(),), leaving=True)
    silent = Heartbeat(worker="b", offers=(offer(),))
    speaks = Heartbeat(worker="c", offers=(offer(),))
    regular = tuple((NOW - ago, speaks) for ago in range(9_000, 0, -2_000))
    (shown,) = of_beats(Beats(((NOW - 7_000, silent), *regular, (NOW, left)), NOW))
    assert [serving.worker for serving in shown.by] == ["c"]
    # A silence of all may be Kafka's for some time.
    assert of_beats(Beats(((NOW, left), (NOW - SILENT_MS - 1_000, silent)), NOW)) == []


def test_a_failing_capability_shows_its_breaker() -> None:
    bad = offer(live={"error_ratio": 1.0, "served": 100, "p50_ms": 5.0, "p90_ms": 5.0})
    sick = [(NOW + 2000 * n, Heartbeat(worker="a", offers=(bad,))) for n in range(3)]
    found = of_beats(Beats(tuple(sick), NOW + 4000))
    assert summary(found[0])["breaker"] == "failing"
    assert "failing" in "\n".join(table(found))
    assert "breaker: failing" in page(found[0])


def test_a_table_leaves_empty_columns_out(tmp_path: Path) -> None:
    lines = table(of_beats(beats(a=(offer(max_cost=0.0),))))
    assert lines[0].split() == ["capability", "version", "workers", "queue", "errors", "breaker", "cost"]
    assert lines[1].split() == ["local/nlp/intent", "1", "1", "0", "0%", "closed", "free"]


def test_a_page_tells_the_whole_card_and_each_worker() -> None:
    calibration = Calibration(
        method="temperature", ece=0.01, threshold=0.9, coverage=0.5, accuracy=0.97, samples=800
    )
    live = {"p50_ms": 1.5, "p90_ms": 12_000.0, "busy_ms": 61_000.0, "gpu": 0.5, "provider": "CUDA"}
    card = offer(
        live=live, calibration=calibration, licence="MIT", input_schema={"description": "A\nlong text"}
    )
    text = "\n".join(page(of_beats(beats(w1=(card,)))[0]))
    for told in ("MIT", "| long text", "97% right", "w1: p50 1.5ms, p90 12.0s", "busy for 61.0s", "GPU 50%"):
        assert told in text


def test_what_waits_for_its_service_is_shown() -> None:
    found = of_beats(beats(w1=(offer("cloud", live={"waits_for": "host:8000: it cannot be reached"}),)))
    assert summary(found[0])["waits_for"] == ["host:8000: it cannot be reached"]
    assert table(found)[1].endswith("waits")
    assert "waits for host:8000: it cannot be reached" in "\n".join(page(found[0]))


@pytest.mark.parametrize(("bound", "shown"), [(None, "free"), (0.0, "free"), (0.5, "up to 0.5")])
def test_what_names_no_price_is_free_as_the_router_prices_it(bound: float | None, shown: str) -> None:
    plain = offer("local")
    one = msgspec.structs.replace(
        plain, card=msgspec.structs.replace(plain.card, cost_per_call=0.0, cost_per_token=0.0, max_cost=bound)
    )
    (found,) = of_beats(beats(w1=(one,)))
    assert f"cost: {shown}\n" in "\n".join(page(found))


@pytest.fixture
def app(tmp_path: Path) -> str:
    path = tmp_path / "an_app.py"
    path.write_text(APP, encoding="utf-8")
    return str(path)


def test_an_app_is_shown_without_kafka(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert [each.name for each in of_app(app)] == ["cloud/nlp/summarize", "local/nlp/summarize"]
    assert main(["capabilities", "list", "--app", app]) == 0
    shown = capsys.readouterr().out
    assert "0.5/call <=0.5" in shown
    assert "0.01/token no bound" in shown
    assert main(["capabilities", "show", "local/nlp/summarize", "--app", app]) == 0
    shown = capsys.readouterr().out
    for told in (
        "The sentences that say most.",
        "| `sentences` is how many.",
        "calls a second: 20",
        '"text"',
    ):
        assert told in shown
    assert main(["capabilities", "show", "nlp/summarize", "--app", app, "--json"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert [each["capability"] for each in both] == ["cloud/nlp/summarize", "local/nlp/summarize"]
    assert both[1]["cards"][0]["card"]["output_schema"]["type"] == "object"
    assert whole(named(of_app(app), "local/nlp/summarize")[0])["live"] == {}


def test_a_name_that_nobody_serves_lists_the_known(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capabilities", "show", "nlp/absent", "--app", app]) == 5
    assert "local/nlp/summarize" in capsys.readouterr().err
    assert main(["capabilities", "list", "--app", "no_such_app_x"]) == 2


def test_without_a_broker_the_reason_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capabilities", "list", "--kafka", "127.0.0.1:1"]) == 3
    assert "127.0.0.1:1" in capsys.readouterr().err

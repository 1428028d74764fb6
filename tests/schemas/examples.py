"""One full example of every message; the golden files hold their bytes in version 1."""

from __future__ import annotations

from schemas.cards import Calibration, Card, Heartbeat, Live, Offer
from schemas.messages import (
    Attempt,
    Cancel,
    Checkpoint,
    Claim,
    Decision,
    Examination,
    Factor,
    Failure,
    Feedback,
    Merge,
    Message,
    Model,
    Partial,
    Plan,
    Request,
    RequestInfo,
    Result,
    Step,
    Subtask,
    Timings,
    Verdict,
)

CLAIM = Claim(dataref="s3://inputs/a", sha256="ab" * 32, size=300_000, content_type="image/png")
REQUEST = Request(
    id="r-1",
    task="financial_report",
    query="生成财报分析",
    inputs={"company": "Acme", "figures": [1.5, 2, None, True], "deep": {"a": [{"b": "c"}]}},
    params={"language": "zh"},
    privacy="high",
    deadline_ms=5000,
    max_cost=0.25,
    tenant="acme.eu",
    reply_to="results.mobile",
    claim=CLAIM,
)
DECISION = Decision(
    step="indicators",
    side="cloud",
    rule="score",
    forbidden={"local": ("no_live_capability",)},
    scores={"cloud": 0.5},
    factors={
        "cloud": {
            "latency": Factor(value=0.8, weight=0.4, source="live"),
            "cost": Factor(value=0.2, weight=0.3),
        }
    },
    threshold=0.9,
    reserved=0.01,
    note="prior used for cost",
)
RESULT = Result(
    id="r-1",
    status="partial",
    output={"revenue": 12.5, "quarters": ["一", "二"]},
    confidence=0.75,
    approximate=True,
    warnings=("possibly inaccurate",),
    missing=("chart",),
    decisions=(DECISION,),
    cost=0.01,
    timings={"indicators": Timings(queue_ms=1.5, service_ms=20.25, total_ms=22.0)},
    models={"indicators": Model(name="fin-large", version="3")},
    sides={"indicators": "cloud"},
    tenant="acme.eu",
    task="financial_report",
    rules="c62fd34a5e6f",
    digest="0" * 32,
    error=Failure(code="deadline_exceeded", message="the step chart did not answer in time"),
    claim=CLAIM,
)
PLAN = Plan(
    request=RequestInfo(
        id="r-1",
        accepted=1_764_500_000_000,
        deadline=1_764_500_005_000,
        task="financial_report",
        tenant="acme.eu",
        reply_to="results.mobile",
        reply_format="json",
        privacy=Verdict(level="high", reasons=("declared",)),
        digest="0" * 32,
        traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01",
        tracestate="vendor=1",
    ),
    rules="c62fd34a5e6f",
    steps=(
        Step(
            name="indicators",
            capability="finance/indicators",
            attempts=(
                Attempt(side="local", triggers=("first",), capability="finance/indicators"),
                Attempt(
                    side="cloud",
                    triggers=("weak", "silent", "failed"),
                    capability="finance/indicators",
                    max_cost=0.01,
                ),
            ),
            after=("tokenize",),
            inputs={"tokens": "steps.tokenize.tokens"},
            threshold=0.9,
            slow_ms=500,
            on_slow="wait",
            weight=0.4,
            priority=2,
            max_batch=8,
        ),
    ),
    merge=Merge(strategy="weighted_fusion", params={"by": "confidence"}),
    inputs={"company": "Acme"},
    params={"language": "zh"},
    query="生成财报分析",
    decisions=(DECISION,),
    answer=Result(
        id="r-1", status="error", error=Failure(code="no_placement", message="both sides are closed")
    ),
)
PARTIAL = Partial(
    subtask="r-1/indicators/cloud/1",
    deadline=1_764_500_005_000,
    output={"label": 7, "scores": [0.25, 0.75]},
    confidence=0.75,
    cost=0.01,
    usage={"tokens": 120.0},
    model=Model(name="fin-large", version="3"),
    timings=Timings(queue_ms=1.5, service_ms=20.25),
    error=Failure(code="backend_error", message="HTTP 503 from the backend"),
    claim=CLAIM,
)
SUBTASK = Subtask(
    id="r-1/indicators/cloud/1",
    capability="finance/indicators",
    deadline=1_764_500_005_000,
    inputs={"company": "Acme"},
    params={"language": "zh"},
    trigger="weak",
    tenant="acme.eu",
    max_batch=8,
    max_cost=0.01,
    traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01",
    tracestate="vendor=1",
    claim=CLAIM,
)
HEARTBEAT = Heartbeat(
    worker="edge-1",
    offers=(
        Offer(
            card=Card(
                capability="nlp/intent",
                side="local",
                version="3",
                model="intent-small",
                model_type="onnx",
                input_schema={"type": "object", "required": ["text"]},
                output_schema={"type": "object"},
                max_qps=200.0,
                cost_per_call=0.001,
                cost_per_token=0.00001,
                max_cost=0.05,
                calibrated=True,
                max_batch=16,
                max_wait_ms=2.0,
                description="intent of a banking question",
            ),
            live=Live(
                queue=1, in_flight=2, p50_ms=3.5, p90_ms=8.0, error_ratio=0.01, served=1000, load_ms=250.0
            ),
        ),
    ),
    started=1_764_500_000_000,
    leaving=True,
)

GUARDED = Plan(
    request=RequestInfo(
        id="r-2",
        accepted=1_764_500_000_000,
        deadline=1_764_500_005_000,
        task="claim_review",
        privacy=Verdict(level="high", reasons=("email", "person"), masked=True),
    ),
    rules="c62fd34a5e6f",
    steps=(
        Step(
            name="summary",
            capability="nlp/summarize",
            attempts=(Attempt(side="cloud", triggers=("first",), capability="nlp/summarize", max_cost=0.01),),
            cache="5f" * 16,
        ),
    ),
    decisions=(
        Decision(
            step="summary",
            side="cloud",
            rule="predicted_weak",
            capability="nlp/summarize",
            expected=0.25,
            reserved=0.01,
        ),
    ),
    cache="9e" * 16,
    mask={"<person_1>": "Ada Byron", "<email_1>": "ada@example.org"},
    examination=Examination(detectors=("formats", "names"), mask=("person", "email"), ignore=("date",)),
)
CALIBRATED = Heartbeat(
    worker="edge-2",
    offers=(
        Offer(
            card=Card(
                capability="nlp/intent",
                side="local",
                version="4",
                model="intent-small",
                calibrated=True,
                cacheable=True,
                calibration=Calibration(
                    method="isotonic", ece=0.015, threshold=0.9, coverage=0.85, accuracy=0.985, samples=3080
                ),
            )
        ),
    ),
)

AWAY = Heartbeat(
    worker="cloud-1",
    offers=(
        Offer(
            card=Card(
                capability="nlp/say", side="cloud", version="1", model="small-chat-1", model_type="openai"
            ),
            live=Live(served=3, waits_for="api.example.com: it cannot be reached", reachable=False),
        ),
    ),
)

EXAMPLES: dict[str, Message] = {
    "request": REQUEST,
    "request-bare": Request(),
    "plan": PLAN,
    "partial": PARTIAL,
    "checkpoint": Checkpoint(
        plan=PLAN, partials=(PARTIAL,), started={"r-1/indicators/local/0": 1_764_500_000_100}
    ),
    "subtask": SUBTASK,
    "result": RESULT,
    "feedback": Feedback(
        id="r-1", verdict="wrong", score=0.25, tenant="acme.eu", label={"intent": "card_arrival"}
    ),
    "heartbeat": HEARTBEAT,
    "plan-guarded": GUARDED,
    "partial-cached": Partial(
        subtask="r-2/summary/cloud/0", deadline=1_764_500_005_000, output="short", cached=True
    ),
    "result-cached": Result(
        id="r-2",
        status="ok",
        output={"label": "card_arrival"},
        privacy=Verdict(level="normal", reasons=("tenant",)),
        cached=True,
    ),
    "cancel": Cancel(id="r-3", tenant="acme.eu"),
    "plan-standing-in": Plan(
        request=RequestInfo(id="r-4", accepted=1_764_500_000_000, deadline=1_764_500_005_000),
        rules="0123456789ab",
        stand_in=Result(id="r-4", status="ok", output={"label": "card_arrival"}, age_ms=420_000, cached=True),
    ),
    "result-degraded": Result(
        id="r-4",
        status="ok",
        output={"label": "card_arrival"},
        cached=True,
        approximate=True,
        age_ms=420_000,
        degraded=("cloud_slow", "stale_cache"),
        warnings=("possibly inaccurate (可能不准确)", "cached answer, 420 s old"),
    ),
    "heartbeat-calibrated": CALIBRATED,
    "heartbeat-away": AWAY,
}
"""By the name of the golden file."""

"""Capability cards and the heartbeats that carry them."""

from __future__ import annotations

from typing import Any, Literal

from schemas.bounds import Money, Ratio
from schemas.messages import Message, Part, Side

ModelType = Literal["onnx", "function", "openai", "open_inference", "http"]


class Calibration(Part, frozen=True, kw_only=True):
    """How far a confidence may be believed, as measured on held-out data.

    `ece` is the expected calibration error over 15 bins of equal width; `coverage` is the share of answers
    at or above `threshold`, `accuracy` the share of right ones among these.
    """

    method: Literal["temperature", "isotonic", "none"]
    ece: Ratio
    threshold: Ratio
    coverage: Ratio
    accuracy: Ratio
    samples: int


class Card(Part, frozen=True, kw_only=True):
    """What a capability is: its schemas, limits and prices.

    `capability` is the name without side (`nlp/summarize`). `max_qps` and `max_cost` are None where unlimited
    or unknown; an unknown cost bound keeps a paid target closed. `calibrated` says that its confidence may be
    believed. `max_batch` and `max_wait_ms` rule batching: at most so many rows, waited for at most so long
    while busy. `cacheable`: equal inputs and params give equal outputs, whenever and by whomever asked.
    `licence` and `source` are the model's and its data's; `quality` says in a line what was measured on what.
    """

    capability: str
    side: Side
    version: str
    model: str
    model_type: ModelType = "function"
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] = {}
    max_qps: float | None = None
    cost_per_call: Money = 0.0
    cost_per_token: Money = 0.0
    max_cost: Money | None = None
    calibrated: bool = False
    max_batch: int = 32
    max_wait_ms: float = 0.0
    description: str = ""
    cacheable: bool = False
    calibration: Calibration | None = None
    licence: str = ""
    source: str = ""
    quality: str = ""


class Live(Part, frozen=True, kw_only=True):
    """Live figures of one capability on one worker. `error_ratio` and the percentiles are of the last ten
    seconds or, where that is less, the last ten rows within a minute; times in ms, None = nothing yet.
    `busy_ms` is how long the oldest run of now has been running: of a model that hangs it grows without end.
    `provider` names what computes (`CPUExecutionProvider`), `gpu` is the share of the last second that the
    GPU was at work, None where there is none to ask. `waits_for` says which service elsewhere was away since
    the worker began, and why: rows are refused until it is there. Empty where there is nothing to wait for.
    `reachable` says of a capability that asks elsewhere whether its service is there, None where that is not
    known: while it is False rows are refused.
    """

    queue: int = 0
    in_flight: int = 0
    p50_ms: float | None = None
    p90_ms: float | None = None
    error_ratio: float = 0.0
    served: int = 0
    load_ms: float = 0.0
    busy_ms: float = 0.0
    provider: str = ""
    gpu: float | None = None
    waits_for: str = ""
    reachable: bool | None = None


class Offer(Part, frozen=True, kw_only=True):
    """A card and its live figures."""

    card: Card
    live: Live = Live()


class Heartbeat(Message, frozen=True, kw_only=True, tag="heartbeat"):
    """Sent every 2 s by each worker, keyed by worker id. `leaving` says it is going: forget it at once."""

    worker: str
    offers: tuple[Offer, ...] = ()
    started: int = 0
    leaving: bool = False

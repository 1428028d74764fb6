"""Rules, views and requests for tests of the router without Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from schemas import codec
from schemas.messages import Failure, Plan, Request, Side, Subtask, Verdict
from schemas.rules import Rules, parse_rules
from streams.delivery import Cleared, Output
from streams.privacy.verdict import NORMAL, declared
from streams.registry import Figures, Gate, Target, View
from streams.router import Planned, Planner, Purse
from streams.router.admission import Admitted, admit

NOW = 1_000_000
MEASURED = Figures(workers=1, queue=0, p50_ms=10.0, p90_ms=20.0, served=100, cost_per_call=0.0, max_cost=0.0)
UNMEASURED = Figures(workers=1, max_cost=0.0)


def rules_of(builtin: bool = False, **tasks: Any) -> Rules:
    """Rules of these tasks, without detectors."""
    return ruled(tasks, builtin=builtin)


def ruled(tasks: dict[str, Any], **more: Any) -> Rules:
    """Rules of these tasks and other keys; without detectors unless `privacy` says so."""
    said = {"tasks": tasks, "builtin": False, "privacy": {"detectors": []}, **more}
    return parse_rules(msgspec.json.encode(said))


class Words:
    """An examiner that finds given words, of kinds that may be masked or not."""

    def __init__(self, secret: Sequence[str] = (), maskable: Sequence[str] = ()) -> None:
        self.secret, self.maskable = tuple(secret), tuple(maskable)

    def __call__(self, request: Request) -> Verdict:
        given = declared(request)
        return (
            given if given.level != "normal" else self.examine(request.query, request.inputs, request.params)
        )

    def examine(self, *parts: Any) -> Verdict:
        text = repr(parts)
        found = [word for word in (*self.secret, *self.maskable) if word in text]
        if not found:
            return NORMAL
        return Verdict(level="high", reasons=("person",), masked=not set(found) & set(self.secret))

    def mask(self, *parts: Any) -> dict[str, str]:
        text = repr(parts)
        return {f"[PERSON_{n}]": word for n, word in enumerate(self.maskable, 1) if word in text}


def view_of(
    capability: str = "intent",
    local: Figures | None = MEASURED,
    cloud: Figures | None = MEASURED,
    gates: dict[Side, Gate] | None = None,
) -> View:
    """One capability on both sides (None: not there)."""
    found: dict[tuple[Side, str], Target] = {}
    pairs: tuple[tuple[Side, Figures | None], ...] = (("local", local), ("cloud", cloud))
    for side, figures in pairs:
        if figures is not None:
            found[side, capability] = Target(figures=figures, gate=(gates or {}).get(side, "closed"))
    counted = frozenset(key for key, target in found.items() if target.gate == "half_open")
    return View(targets=found, counted=counted)


def live_view(rules: Rules, figures: Figures = MEASURED) -> View:
    """Everything that the rules can use is alive."""
    return View(targets={pair: Target(figures=figures) for pair in rules.capabilities})


def admitted_of(request: Request, at: int = NOW) -> Admitted:
    """The request as a router reads it at `at`."""
    return admit(RequestRecord(codec.encode(request), timestamp=at))


def decided(rules: Rules, request: Request, view: View, purse: Purse = "open", **how: Any) -> Planned:
    """What a planner of `rules` makes of `request`, read at once."""
    return Planner(rules, **how).decide(admitted_of(request), view, NOW, purse)


@dataclass
class RequestRecord:
    value: bytes | None
    offset: int = 0
    timestamp: int = NOW
    headers: Sequence[tuple[str, bytes]] = ()
    key: bytes | None = None
    topic: str = "requests"
    partition: int = 0


def asked(offset: int = 0, fmt: Any = "msgpack", **fields: Any) -> RequestRecord:
    return RequestRecord(codec.encode(Request(**fields), fmt), offset)


@dataclass
class RequestLane:
    """Remembers each settle and failure."""

    topic: str = "requests"
    partition: int = 0
    alive: bool = True
    settles: list[tuple[list[int], list[Output]]] = field(default_factory=list)
    failed: list[tuple[int, Failure]] = field(default_factory=list)
    absorbed: list[int] = field(default_factory=list)

    def absorb(self, offset: int) -> None:
        self.absorbed.append(offset)

    def settle(self, offsets: Iterable[int], outputs: Sequence[Output] = ()) -> None:
        self.settles.append((list(offsets), list(outputs)))

    def fail(self, record: RequestRecord, failure: Failure) -> None:
        self.failed.append((record.offset, failure))

    @property
    def outputs(self) -> list[Output]:
        return [output for _, outputs in self.settles for output in outputs]

    @property
    def plans(self) -> list[Plan]:
        return [plan_in(output) for output in self.outputs if topic_of(output) == "joins"]

    @property
    def subtasks(self) -> list[tuple[str, Subtask]]:
        return [
            (topic_of(output), codec.decode(record_in(output).value, Subtask))
            for output in self.outputs
            if topic_of(output) != "joins"
        ]


def record_in(output: Output) -> Any:
    return output.record if isinstance(output, Cleared) else output


def topic_of(output: Output) -> str:
    return str(record_in(output).topic)


def plan_in(output: Output) -> Plan:
    return codec.decode(record_in(output).value, Plan)

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from edgeway.client import GatewayRefused, Unauthorized, UnknownRequest
from edgeway.client.replies import Again, Open, event_of, meaning_of
from edgeway.client.sse import ServerEvent
from edgeway.gateway.problems import STATUSES
from schemas.messages import Request, Result

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JSON = {"content-type": "application/json"}
PROBLEM = {"content-type": "application/problem+json"}
ASKED = Request(id="a", task="t")


def said(status: int, body: Any = b"", asked: Request | None = ASKED, **headers: str) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = JSON if status == 200 else PROBLEM if raw else {}
    return meaning_of(status, {**kind, **headers}, raw, NOW, asked)


def test_answers() -> None:
    assert said(200, {"type": "result", "v": 1, "id": "a", "status": "ok", "output": 1}) == Result(
        id="a", status="ok", output=1
    )
    assert said(202, location="/requests/a?until=5") == Open("/requests/a?until=5")
    with pytest.raises(GatewayRefused, match="cannot be read"):
        said(200, b"<html>")


def test_an_error_result_in_a_problem_is_the_result() -> None:
    result = {"id": "a", "status": "error", "type": "result", "v": 1, "cost": 0.5}
    result["error"] = {"code": "overloaded", "message": "full"}
    found = said(503, {"code": "overloaded", "result": result}, **{"retry-after": "1"})
    assert isinstance(found, Result)
    assert (found.cost, found.error.code if found.error else None) == (0.5, "overloaded")


@pytest.mark.parametrize("code", sorted(STATUSES))
def test_every_refusal_of_a_request_means_something(code: str) -> None:
    status, title = STATUSES[code]  # type: ignore[index]
    found = said(status, {"code": code, "title": title, "detail": "why"})
    if isinstance(found, Result):
        assert found.error is not None
        assert (found.id, found.error.code, found.error.message) == ("a", code, "why")
    else:
        assert isinstance(found, Again)
        assert status >= 500


def test_try_again() -> None:
    found = said(429, {"code": "overloaded", "detail": "slow down"}, **{"retry-after": "7"})
    assert isinstance(found, Again)
    assert (found.retry_after_s, str(found.refusal)) == (
        7.0,
        "the gateway refused with 429 (overloaded): slow down",
    )
    date = "Thu, 01 Jan 2026 00:00:30 GMT"
    assert said(503, **{"retry-after": date}).retry_after_s == 30.0
    assert said(503, **{"retry-after": "Wed, 31 Dec 2025 00:00:30 GMT"}).retry_after_s == 0.0
    assert said(503, **{"retry-after": "soon"}).retry_after_s is None
    for odd in ("Thu, 01 Jan 2026 00:00:30 +99999999999999", "Thu, 01 Jan 99999999999999999999 00:00:30 GMT"):
        assert said(503, **{"retry-after": odd}).retry_after_s is None
    assert said(502, b"<html>bad gateway</html>").refusal.status == 502


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "invalid_request", Unauthorized),
        (403, "invalid_request", Unauthorized),
        (404, "unanswered", UnknownRequest),
        (404, "invalid_request", GatewayRefused),
        (405, "invalid_request", GatewayRefused),
        (415, "invalid_request", GatewayRefused),
        (302, "", GatewayRefused),
    ],
)
def test_refusals_for_good(status: int, code: str, kind: type[GatewayRefused]) -> None:
    with pytest.raises(GatewayRefused) as caught:
        said(status, {"code": code, "detail": "why"})
    assert type(caught.value) is kind
    assert caught.value.status == status


def test_events() -> None:
    assert event_of(ServerEvent("planned", '{"task": "t"}', "17-2")) == ("planned", 17, {"task": "t"})
    assert event_of(ServerEvent("planned", "{}", "")).at == 0
    with pytest.raises(ValueError, match="no object"):
        event_of(ServerEvent("planned", "[]", "1-1"))

"""The gateway is called as its OpenAPI document says, and as it does not; it answers as the document says."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from schemas.messages import Request, Result
from streams.settings import Settings
from tests.helpers.gateway import Served, gateway

EXAMPLES = 10
RULES = {"tasks": {"summarize": {"capability": "nlp/summarize"}}}


async def answered(request: Request) -> Result:
    """Some answers of every kind, by what is asked."""
    made = {"tenant": request.tenant, "status": "ok", "output": request.inputs, "confidence": 0.5}
    return Result(id=request.id or "", **made)


class Serving:
    """A gateway in a thread with a loop of its own: schemathesis calls it from this one."""

    def __init__(self) -> None:
        self._up, self._loop = threading.Event(), asyncio.new_event_loop()
        self._down = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self.served: Served | None = None

    async def _serve(self) -> None:
        have = Settings(upload_bytes=1_000_000)
        async with gateway(answered, socket=True, rules=RULES, settings=have) as self.served:
            self._up.set()
            await self._down.wait()

    def __enter__(self) -> str:
        self._thread.start()
        assert self._up.wait(20)
        assert self.served is not None
        return f"http://127.0.0.1:{self.served.port}"

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._down.set)
        self._thread.join(20)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Serving() as found:
        yield found


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_it_answers_as_it_says(url: str, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    statuses: Counter[int] = Counter()

    def called(case: schemathesis.Case) -> None:
        response = case.call(timeout=10)
        statuses[response.status_code] += 1
        # What a schema cannot say (bytes of an id, 64 bits, allowed hosts) is refused in words.
        case.validate_response(response, excluded_checks=[positive_data_acceptance])

    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 7
    for operation in operations:
        check = given(case=operation.as_strategy(generation_mode=mode))(called)
        check = settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(check)
        check()
    if mode is GenerationMode.POSITIVE:
        assert sum(n for status, n in statuses.items() if status in (200, 202, 404)) > statuses.total() / 2

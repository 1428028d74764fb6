"""The gateway is called as its OpenAPI document says, and as it does not; it answers as the document says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from schemas.messages import Request, Result
from streams.settings import Settings
from tests.edgeway.gateway.serving import Serving

EXAMPLES = 6
RULES = {"tasks": {"summarize": {"capability": "nlp/summarize"}}}


async def answered(request: Request) -> Result:
    """Some answers of every kind, by what is asked."""
    made = {"tenant": request.tenant, "status": "ok", "output": request.inputs, "confidence": 0.5}
    return Result(id=request.id or "", **made)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Serving(answered, rules=RULES, settings=Settings(upload_bytes=1_000_000)) as served:
        yield f"http://127.0.0.1:{served.port}"


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

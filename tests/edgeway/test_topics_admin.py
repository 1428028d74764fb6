"""What a broker refuses of topics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from edgeway.errors import Exit, TopicsRefused
from edgeway.topics_admin import _create
from schemas.rules import parse_rules
from schemas.topics import topics_for


async def test_topics_that_a_broker_refuses_end_with_the_code_of_topics() -> None:
    specs = list(topics_for(parse_rules(b"{}"), 3))[:1]

    async def create_topics(_new: object) -> Any:
        return SimpleNamespace(topic_errors=[(specs[0].name, 38, "replication factor 3, 1 broker")])

    client: Any = SimpleNamespace(create_topics=create_topics)
    with pytest.raises(TopicsRefused, match=r"was not made: .*1 broker") as refused:
        await _create(client, specs, 3)
    assert refused.value.exit_code == Exit.TOPICS == 4

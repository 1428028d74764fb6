"""Options, prices and bounds of OpenAI-compatible backends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.cards import Card, ModelType
from workers.backends.openai import OpenAIBackend
from workers.backends.openai_answers import (
    usage_of,
)
from workers.backends.openai_prices import Prices, Tokens
from workers.backends.registry import build as build_by_kind
from workers.errors import LoadError

COUNTS = st.integers(0, 10_000)
PRICES = st.builds(Prices, st.floats(0, 10), st.floats(0, 1), st.floats(0, 1))


@given(PRICES, COUNTS, COUNTS, COUNTS, COUNTS)
def test_a_cost_never_exceeds_the_bound_that_its_tokens_keep(
    prices: Prices, prompt: int, answer: int, more_prompt: int, more_answer: int
) -> None:
    most = Tokens(prompt + more_prompt, answer + more_answer)
    usage = usage_of({"usage": {"prompt_tokens": prompt, "completion_tokens": answer}})
    cost = prices.cost(usage, most)
    assert cost == pytest.approx(prices.per_call + prices.per_prompt * prompt + prices.per_answer * answer)
    assert cost <= prices.most(most) * (1 + 1e-12)
    assert prices.cost({}, most) == prices.most(most), "what is not counted costs the most"
    assert prices.cost({"prompt_tokens": float(prompt)}, most) >= cost * (1 - 1e-12)


def test_the_most_of_a_call_follows_from_prices_and_limits() -> None:
    limits = {"max_tokens": 100, "max_prompt_bytes": 744, "input_per_1m_tokens": 2.0}
    made = OpenAIBackend("cloud/a", url="https://a/v1", model="m", output_per_1m_tokens=10.0, **limits)
    assert made.card.max_cost == pytest.approx(1000 * 2e-6 + 100 * 10e-6)
    one = OpenAIBackend("cloud/a", url="https://a/v1", model="m", cost_per_token=1e-6, cost_per_call=1.0)
    assert one.card.max_cost == pytest.approx(1.0 + (32 * 1024 + 256 + 512) * 1e-6)
    free = OpenAIBackend("local/a", url="http://a/v1", model="m")
    assert free.card.max_cost == 0.0
    assert (free.card.model, free.card.model_type, free.card.max_batch) == ("m", "openai", 16)
    with pytest.raises(LoadError, match=r"max_cost is 0\.001 and a call may cost 0\.003"):
        OpenAIBackend(
            "cloud/a", url="https://a/v1", model="m", max_cost=0.001, output_per_1m_tokens=10.0, **limits
        )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"url": None}, "url"),
        ({"url": "https://user:4111@a/v1"}, "password"),
        ({"model": None}, "model"),
        ({"mode": "speech"}, "mode"),
        ({"json": "xml"}, "json"),
        ({"json": "schema"}, "output_schema"),
        ({"prompt": "{"}, "prompt"),
        ({"extra": {"stream": True}}, "stream"),
        ({"extra": {"n": 3}}, "n"),
        ({"pass_params": ["model"]}, "model"),
        ({"headers": {"Authorization": "Bearer 4111"}}, "key_env"),
        ({"headers": {"x": "a\nb"}}, "header"),
        ({"key_env": "A", "key_file": "b"}, "not both"),
        ({"key": "4111"}, "key"),
        ({"max_images": 1, "input_per_1m_tokens": 1.0}, "image_tokens"),
        ({"token_field": "tokens"}, "token_field"),
        ({"max_batch": "many"}, "card"),
        ({"temperature": 3}, "temperature"),
    ],
)
def test_options_that_are_none(options: dict[str, Any], named: str) -> None:
    given_all = {"url": "https://a/v1", "model": "m", **options}
    kept = {name: value for name, value in given_all.items() if value is not None}
    with pytest.raises(LoadError, match=named) as caught:
        OpenAIBackend("cloud/a", **kept)
    assert "4111" not in str(caught.value)


@pytest.mark.parametrize("name", ["a", "edge/a", "cloud/", "cloud/a b"])
def test_names_that_make_no_topic(name: str) -> None:
    with pytest.raises(LoadError, match="capability"):
        OpenAIBackend(name, url="https://a/v1", model="m")


@pytest.mark.parametrize("kind", ["openai", "http"])
@pytest.mark.parametrize(
    "url",
    [
        "https://user:4111-secret@h/v1",
        "https://h/v1?key=4111-secret",
        "https://h/v1?api_key=4111-secret",
        "https://h/v1?api-version=2&Subscription-Key=4111-secret",
        "https://h/v1?access_token=4111-secret",
        "https://h/v1?sig=4111-secret",
    ],
)
def test_a_url_that_holds_a_key_is_refused(kind: ModelType, url: str) -> None:
    card = Card(capability="nlp/say", side="cloud", version="1", model="m", model_type=kind)
    with pytest.raises(LoadError, match="holds") as caught:
        build_by_kind(card, {"url": url})
    assert "secret" not in str(caught.value)
    build_by_kind(card, {"url": "https://h/v1?api-version=2024-06-01&design=x&keys_of=1"})

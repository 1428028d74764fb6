from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.messages import Factor, Side
from schemas.rules import Weights
from streams.registry import Figures, Target
from streams.router.prices import Option
from streams.router.score import score
from tests.helpers.routing import MEASURED

SIDES: tuple[Side, Side] = ("local", "cloud")


class Scored(NamedTuple):
    side: str
    scores: dict[str, float]
    factors: dict[str, dict[str, Factor]]


def scored_of(
    local: Figures | None = None,
    cloud: Figures | None = None,
    left_ms: int = 1000,
    weights: Weights | None = None,
    most: float | None = None,
) -> Scored:
    """By side."""
    options = [
        Option(side, "c", Target(figures=of), of.cost_per_call) if of else Option(side, "c", None, None)
        for side, of in zip(SIDES, (local, cloud), strict=True)
    ]
    found = score(options, left_ms, weights, most)
    return Scored(
        SIDES[found.best],
        dict(zip(SIDES, found.scores, strict=True)),
        dict(zip(SIDES, found.factors, strict=True)),
    )


def figures(**fields: object) -> Figures:
    return msgspec.structs.replace(MEASURED, **fields)


def test_the_priors_of_the_original():
    scored = scored_of()
    assert scored.side == "local"
    assert scored.scores == {"local": pytest.approx(0.61), "cloud": pytest.approx(0.44)}
    assert {factor.source for side in scored.factors.values() for factor in side.values()} == {"prior"}


def test_live_latency_is_relative_to_what_is_left():
    scored = scored_of(figures(p50_ms=250.0), figures(p50_ms=100.0))
    assert scored.factors["local"]["latency"].value == 0.75
    assert scored.factors["cloud"]["latency"].value == 0.9
    assert scored.factors["cloud"]["latency"].source == "live"


def test_the_queue_counts():
    busy = figures(p50_ms=100.0, queue=4, max_batch=2)
    assert scored_of(busy, figures()).factors["local"]["latency"].value == pytest.approx(0.7)


def test_latency_beyond_the_deadline_is_nought():
    assert scored_of(figures(p50_ms=5000.0), figures()).factors["local"]["latency"].value == 0.0
    assert scored_of(figures(), figures(), left_ms=0).factors["local"]["latency"].value == 0.0


def test_a_factor_measured_on_one_side_only_is_the_prior_on_both():
    scored = scored_of(figures(p50_ms=None), figures())
    assert scored.factors["local"]["latency"].source == "prior"
    assert scored.factors["cloud"]["latency"].source == "prior"


def test_cost_is_relative_to_the_dearest():
    scored = scored_of(figures(cost_per_call=1.0), figures(cost_per_call=4.0))
    assert scored.factors["local"]["cost"].value == 0.75
    assert scored.factors["cloud"]["cost"].value == 0.0


def test_cost_is_relative_to_max_cost_where_it_is_given():
    scored = scored_of(figures(), figures(cost_per_call=4.0), most=16.0)
    assert scored.factors["cloud"]["cost"].value == 0.75
    assert scored_of(figures(), figures(cost_per_call=4.0), most=0.0).factors["cloud"]["cost"].value == 0


def test_without_any_price_the_priors_count():
    scored = scored_of(figures(), figures())
    assert scored.factors["local"]["cost"].value == 0.9
    assert scored.factors["cloud"]["cost"].source == "prior"


def test_what_is_free_beside_a_price_is_best():
    assert scored_of(figures(), figures(cost_per_call=1.0)).factors["local"]["cost"].value == 1.0


def test_weights_of_the_task_decide():
    slow, fast = figures(p50_ms=900.0), figures(p50_ms=10.0)
    assert scored_of(slow, fast, weights=Weights(latency=1, cost=0, privacy=0)).side == "cloud"
    assert scored_of(slow, fast, weights=Weights(latency=0, cost=0, privacy=5)).side == "local"


def test_only_the_ratios_of_weights_count():
    once = scored_of(weights=Weights(latency=4, cost=3, privacy=3))
    assert once.scores == scored_of().scores


def test_local_wins_a_tie():
    scored = scored_of(figures(), figures(), weights=Weights(latency=1, cost=0, privacy=0))
    assert scored.scores["local"] == scored.scores["cloud"]
    assert scored.side == "local"


amounts = st.floats(0, 1e6, allow_nan=False)
some_figures = st.none() | st.builds(
    Figures,
    workers=st.integers(1, 50),
    queue=st.integers(0, 10_000),
    p50_ms=st.none() | amounts,
    cost_per_call=amounts,
    max_cost=st.none() | amounts,
    max_batch=st.integers(1, 64),
)


@given(
    some_figures,
    some_figures,
    st.integers(-1000, 600_000),
    st.builds(Weights, latency=st.floats(0.01, 1e3), cost=st.floats(0, 1e3), privacy=st.floats(0, 1e3)),
    st.none() | amounts,
)
def test_scores_and_factors_are_in_zero_to_one(local, cloud, left_ms, weights, max_cost):
    scored = scored_of(local, cloud, left_ms, weights=weights, most=max_cost)
    assert all(0.0 <= value <= 1.0 for value in scored.scores.values())
    for found in scored.factors.values():
        assert all(0.0 <= factor.value <= 1.0 for factor in found.values())
        assert sum(factor.weight for factor in found.values()) == pytest.approx(1.0)
    assert scored.scores[scored.side] == max(scored.scores.values())

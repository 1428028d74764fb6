from __future__ import annotations

import pytest

from streams.merge import Part
from streams.merge.weighted_fusion import weighted_fusion


def test_numbers_are_averaged_by_weight_times_confidence():
    parts = [
        Part("a", {"risk": 1.0}, confidence=0.5, weight=2.0),
        Part("b", {"risk": 4.0}, confidence=1.0, weight=2.0),
    ]
    merged = weighted_fusion(parts, {})
    assert merged.output["risk"] == pytest.approx(3.0)
    assert merged.confidence == pytest.approx(0.75)


def test_confidence_is_the_mean_by_weight_of_those_known():
    parts = [Part("a", {}, 0.2, 3.0), Part("b", {}, 1.0, 1.0), Part("c", {}, None, 9.0)]
    assert weighted_fusion(parts, {}).confidence == pytest.approx(0.4)


def test_keys_of_one_step_stay_as_they_are():
    parts = [Part("tokens", {"count": 7}), Part("chart", {"type": "bar"})]
    assert weighted_fusion(parts, {}).output == {"count": 7, "type": "bar"}


def test_label_maps_are_added_and_a_missing_label_counts_nothing():
    parts = [Part("a", {"p": {"cat": 0.6, "dog": 0.4}}), Part("b", {"p": {"cat": 0.2, "owl": 0.8}})]
    assert weighted_fusion(parts, {}).output["p"] == pytest.approx({"cat": 0.4, "dog": 0.2, "owl": 0.4})


def test_listed_keys_are_label_maps_whatever_they_sum_to():
    parts = [Part("a", {"p": {"cat": 3.0}}), Part("b", {"p": {"dog": 1.0}})]
    assert weighted_fusion(parts, {"labels": ["p"]}).output["p"] == {"cat": 1.5, "dog": 0.5}
    assert weighted_fusion(parts, {}).output["p"] == {"cat": 3.0, "dog": 1.0}


def test_other_conflicts_go_to_the_weightier_then_to_the_first_name():
    parts = [Part("a", {"label": "x"}, 0.9, 1.0), Part("b", {"label": "y"}, 0.5, 3.0)]
    assert weighted_fusion(parts, {}).output == {"label": "y"}
    parts = [Part("b", {"label": "y"}, 0.5), Part("a", {"label": "x"}, 0.5)]
    assert weighted_fusion(parts, {}).output == {"label": "x"}


def test_booleans_are_no_numbers():
    assert weighted_fusion([Part("a", {"k": True}, weight=2.0), Part("b", {"k": 0})], {}).output == {
        "k": True
    }


def test_what_is_not_finite_is_left_out_with_a_warning():
    parts = [Part("a", {"n": float("nan"), "only": float("inf")}), Part("b", {"n": 2.0})]
    merged = weighted_fusion(parts, {})
    assert merged.output == {"n": 2.0}
    assert len(merged.warnings) == 2
    assert all("step a" in warning for warning in merged.warnings)


def test_outputs_that_are_no_maps():
    assert weighted_fusion([Part("a", 1.0), Part("b", 3.0)], {}).output == 2.0
    assert weighted_fusion([Part("a", {"k": 1}), Part("b", "text")], {}).output == {"k": 1, "b": "text"}


def test_weights_of_nothing_fall_back_to_the_plain_mean():
    assert weighted_fusion([Part("a", 1.0, 0.0), Part("b", 3.0, 0.0)], {}).output == 2.0


def test_huge_numbers_do_not_run_over():
    assert weighted_fusion([Part("a", 1.7e308, weight=3.0), Part("b", 1.6e308)], {}).output < float("inf")

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


def test_equal_values_are_believed_together():
    parts = [Part("a", {"t": "x"}, 0.4), Part("b", {"t": "y"}, 0.6), Part("c", {"t": "x"}, 0.4)]
    assert weighted_fusion(parts, {}).output == {"t": "x"}


def test_null_says_nothing_where_another_says_something():
    assert weighted_fusion([Part("a", {"n": None}, 1.0), Part("b", {"n": 2}, 0.1)], {}).output == {"n": 2}
    assert weighted_fusion([Part("a", {"n": None})], {}).output == {"n": None}


def test_lists_of_labels_with_scores_are_added_label_by_label():
    cat, dog = {"label": "cat", "index": 1}, {"label": "dog", "index": 2}
    parts = [
        Part("a", {"classes": [{**cat, "score": 0.8}, {**dog, "score": 0.2}]}, weight=1.0),
        Part("b", {"classes": [{**dog, "score": 0.9}]}, weight=3.0),
    ]
    (first, second) = weighted_fusion(parts, {}).output["classes"]
    assert first == {**dog, "score": pytest.approx(0.725)}
    assert second == {**cat, "score": pytest.approx(0.2)}


def test_a_label_and_its_score_go_together():
    parts = [
        Part("a", {"label": "cat", "score": 0.9}, weight=0.2),
        Part("b", {"label": "dog", "score": 0.6}, weight=0.4),
        Part("c", {"label": "dog", "score": 0.7}, weight=0.4),
    ]
    assert weighted_fusion(parts, {}).output == {"label": "dog", "score": pytest.approx(0.52)}


def test_the_label_is_that_of_the_fused_scores():
    parts = [
        Part("a", {"label": "cat", "p": {"cat": 0.51, "dog": 0.49}}, 0.9),
        Part("b", {"label": "dog", "p": {"cat": 0.0, "dog": 1.0}}, 0.8),
    ]
    assert weighted_fusion(parts, {}).output["label"] == "dog"
    # Labels of another kind than the scores are their own.
    other = [Part("a", {"label": "big", "p": {"x": 0.9, "y": 0.1}}), Part("b", {"label": "small"}, 0.5)]
    assert weighted_fusion(other, {}).output["label"] == "big"


def test_lists_of_measures_are_averaged_place_by_place_and_ids_are_not():
    parts = [Part("a", {"v": [1.0, 0], "ids": [5, 9]}), Part("b", {"v": [0.0, 1.0], "ids": [7, 1]})]
    assert weighted_fusion(parts, {}).output == {"v": [0.5, 0.5], "ids": [5, 9]}
    odd = weighted_fusion([Part("a", {"v": [float("nan"), 1.0]}, 1.0), Part("b", {"v": [2.0, 3.0]}, 0.1)], {})
    assert odd.output == {"v": [2.0, 3.0]}
    assert "step a: output.v holds what is no finite number" in odd.warnings[0]


def test_lists_of_other_lengths_and_finds_in_images_are_values():
    box = {"label": "cat", "score": 0.5, "box": [0, 0, 1, 1]}
    parts = [Part("a", {"v": [1.0], "o": [box, box]}, 0.9), Part("b", {"v": [1.0, 2.0], "o": [box]}, 0.8)]
    assert weighted_fusion(parts, {}).output == {"v": [1.0], "o": [box, box]}


def test_claims_are_taken_whole_and_alike_where_their_content_is():
    claim = {"dataref": "s3://near/1", "sha256": "a" * 64, "size": 9}
    parts = [
        Part("a", claim, 0.5),
        Part("b", {**claim, "dataref": "s3://far/2", "content_type": "image/png"}, 0.5),
        Part("c", {**claim, "sha256": "b" * 64, "size": 7}, 0.9),
    ]
    assert weighted_fusion(parts, {}).output == claim
    mixed = weighted_fusion([parts[0], Part("d", {"size": 1})], {}).output
    assert mixed == {"a": claim, "size": 1}

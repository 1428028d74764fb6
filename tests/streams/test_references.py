from __future__ import annotations

import pytest

from streams.references import Unresolved, resolve, resolve_known


def test_no_references_give_all_inputs_and_the_query():
    assert resolve({}, {"a": 1}, {"p": 2}, "why") == {"a": 1, "query": "why"}
    assert resolve({}, {"a": 1}, {}, None) == {"a": 1}


def test_an_input_named_query_is_kept():
    assert resolve({}, {"query": "mine"}, {}, "other") == {"query": "mine"}


def test_the_request_is_not_changed():
    inputs = {"a": 1}
    resolve({}, inputs, {}, "why")
    assert inputs == {"a": 1}


def test_every_kind_of_reference():
    refs = {
        "i": "inputs.a",
        "d": "inputs.b.c",
        "p": "params.x",
        "q": "query",
        "s": "steps.one",
        "t": "steps.one.k",
    }
    outputs = {"one": {"k": 5}}
    assert resolve(refs, {"a": 1, "b.c": 2}, {"x": 3}, "why", outputs) == {
        "i": 1,
        "d": 2,
        "p": 3,
        "q": "why",
        "s": {"k": 5},
        "t": 5,
    }


def test_a_step_with_a_dot_in_its_name_wins_over_a_part():
    assert resolve({"s": "steps.a.b"}, {}, {}, None, {"a": {"b": 1}, "a.b": 2}) == {"s": 2}
    assert resolve({"s": "steps.a.b.c"}, {}, {}, None, {"a": {"b.c": 4}}) == {"s": 4}


def test_what_is_not_there_leaves_its_name_out():
    refs = {
        "a": "inputs.a",
        "i": "inputs.gone",
        "p": "params.gone",
        "q": "query",
        "s": "steps.one.gone",
        "t": "steps.two.k",
    }
    assert resolve(refs, {"a": 1}, {}, None, {"one": {"k": 1}, "two": "text"}) == {"a": 1}


def test_a_value_of_none_is_there():
    assert resolve({"a": "inputs.a", "s": "steps.one"}, {"a": None}, {}, None, {"one": None}) == {
        "a": None,
        "s": None,
    }


@pytest.mark.parametrize("reference", ["inputs.gone", "query", "steps.gone", "steps.gone.k", "nonsense", ""])
def test_inputs_that_lead_nowhere(reference):
    with pytest.raises(Unresolved):
        resolve({"x": reference}, {"a": "secret"}, {}, None, {"one": {"k": 1}})


def test_values_are_never_in_the_message():
    with pytest.raises(Unresolved) as caught:
        resolve({"x": "steps.one.gone"}, {"a": "secret"}, {}, None, {"one": {"k": "secret"}})
    assert "secret" not in str(caught.value)


def test_known_leaves_out_the_steps():
    assert resolve_known({"s": "steps.one", "i": "inputs.a"}, {"a": 1}, {}, None) == {"i": 1}
    assert resolve_known({"s": "steps.one", "i": "inputs.a"}, {}, {}, None) == {}
    assert resolve_known({"s": "steps.one"}, {"a": 1}, {}, None) == {}
    assert resolve_known({}, {"a": 1}, {}, "why") == {"a": 1, "query": "why"}


def test_known_refuses_what_the_request_can_never_feed():
    with pytest.raises(Unresolved):
        resolve_known({"i": "inputs.a"}, {}, {}, None)

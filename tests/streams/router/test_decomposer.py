from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas.messages import Request
from schemas.rules import Rules, StepRule
from streams.registry import Target, View
from streams.router import DecomposerError, Planned, decomposer, load_decomposers
from streams.router.decomposer import MAX_STEPS
from tests.helpers.routing import MEASURED, Words, decided, live_view, rules_of

RULES = rules_of(
    report={"local_threshold": 0.6, "deadline_ms": 900, "capability": "nlp/summarize"},
    other={"side": "local"},
)


def made(function: Any, rules: Rules = RULES, view: View | None = None, **fields: Any) -> Planned:
    asked = Request(**{"id": "r1", "task": "report", "inputs": {"pages": ["a", "b"]}, **fields})
    return decided(rules, asked, view or live_view(rules), decomposers={"report": function})


def error_of(found: Planned) -> tuple[str, str]:
    assert found.plan.answer is not None
    assert found.plan.answer.error is not None
    assert found.first == ()
    return found.plan.answer.error.code, found.plan.answer.error.message


def pages(request: Request) -> list[dict[str, Any]]:
    return [{"name": f"page{n}", "capability": "nlp/summarize"} for n in range(len(request.inputs["pages"]))]


def test_steps_by_the_request():
    found = made(pages, inputs={"pages": ["a", "b", "c"]})
    assert [step.name for step in found.plan.steps] == ["page0", "page1", "page2"]
    assert found.plan.merge is not None
    assert found.plan.request.deadline - found.plan.request.accepted == 900


def test_they_inherit_what_the_task_says():
    found = made(pages)
    assert [step.threshold for step in found.plan.steps] == [0.6, 0.6]


def test_step_rules_do_as_well():
    found = made(lambda request: [StepRule(name="s", capability="nlp/summarize", side="local")])
    assert [sent.side for sent in found.first] == ["local"]


def test_none_leaves_the_steps_of_the_rules():
    found = made(lambda request: None)
    assert [step.capability for step in found.plan.steps] == ["nlp/summarize"]


def test_another_task_is_not_asked():
    found = made(pages, task="other")
    assert [step.capability for step in found.plan.steps] == ["other"]


def fails(request: Request) -> list[Any]:
    raise KeyError("secret words of the payload")


def leaves(request: Request) -> list[Any]:
    raise SystemExit(3)


class Panic(BaseException):
    """As extensions written in Rust raise it."""


def panics(request: Request) -> list[Any]:
    raise Panic("secret words of the payload")


def gives_up(request: Request) -> list[Any]:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (fails, "raised KeyError"),
        (leaves, "raised SystemExit"),
        (gives_up, "raised CancelledError"),
        (panics, "raised Panic"),
        (lambda request: [], "gave 0 steps"),
        (lambda request: [{"name": f"s{n}"} for n in range(MAX_STEPS + 1)], f"gave {MAX_STEPS + 1} steps"),
        (lambda request: {"name": "s"}, "gave a dict"),
        (lambda request: "secret", "gave a str"),
        (lambda request: [object()], "no list of steps"),
        (lambda request: [5], "refused"),
        (lambda request: [{"name": "s", "secret": 1}], "refused"),
        (lambda request: [{"name": "secret"}, {"name": "secret"}], "stands twice"),
        (lambda request: [{"name": "a", "after": ["secret"]}], "no step '...'"),
        (
            lambda request: [{"name": "a", "after": ["b"]}, {"name": "b", "after": ["a"]}],
            "wait for each other",
        ),
        (lambda request: [{"name": "s", "capability": "no topic: secret"}], "refused"),
        (lambda request: [{"name": "s", "side": "cloud", "inputs": {"x": "steps.secret"}}], "refused"),
    ],
)
def test_what_a_rules_file_could_not_have_is_an_error_without_the_payload(function, words):
    code, message = error_of(made(function))
    assert code == "decomposer_failed"
    assert words in message
    assert "'report'" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("name", "allowed"), [("Ann Lee", False), ("about Ann Lee", False), ("bomb", False), ("page0", True)]
)
def test_a_name_made_of_what_must_stay_keeps_the_request(name, allowed):
    def split(request: Request) -> list[dict[str, Any]]:
        return [{"name": name, "capability": "nlp/summarize"}]

    asked = Request(id="r1", task="report", inputs={"text": "for Ann Lee"})
    examiner = Words(secret=["bomb"], maskable=["Ann Lee"])
    for_all = decided(RULES, asked, live_view(RULES), decomposers={"report": split}, examiner=examiner)
    assert for_all.plan.request.privacy.cloud_allowed is allowed
    sides = {attempt.side for attempt in for_all.plan.steps[0].attempts}
    assert ("cloud" in sides) is allowed
    quiet = msgspec.structs.replace(asked, inputs={"text": "x"})
    found = decided(RULES, quiet, live_view(RULES), decomposers={"report": split}, examiner=examiner)
    assert found.plan.request.privacy.cloud_allowed is allowed


def test_as_many_as_may_be():
    assert (
        len(
            made(
                lambda request: [{"name": f"s{n}", "capability": "nlp/summarize"} for n in range(MAX_STEPS)]
            ).plan.steps
        )
        == MAX_STEPS
    )


def test_a_capability_that_the_rules_do_not_name_must_be_alive():
    def foreign(request: Request) -> list[dict[str, Any]]:
        return [{"name": "s", "capability": "nlp/other"}]

    rules = rules_of(report={"scale_to_zero": True})
    assert error_of(made(foreign, rules))[0] == "no_placement"
    alive = View(targets={("local", "nlp/other"): Target(figures=MEASURED)})
    assert [sent.subtask.capability for sent in made(foreign, rules, alive).first] == ["nlp/other"]
    assert made(lambda request: [{"name": "s", "capability": "report"}], rules, View()).plan.answer is None


def test_privacy_holds_for_decomposed_steps():
    found = made(
        lambda request: [{"name": "s", "capability": "nlp/summarize", "side": "cloud"}], privacy="high"
    )
    assert error_of(found)[0] == "no_placement"


def test_the_example_of_the_docs(tmp_path: Path):
    text = Path(__file__).parents[3].joinpath("docs", "routing.md").read_text(encoding="utf-8")
    path = tmp_path / "splits.py"
    path.write_text(text.partition("```python\n")[2].partition("```")[0])
    split = load_decomposers([str(path)])["report"]
    found = made(split, inputs={"page1": "one", "page2": "two", "x": 1})
    assert [sent.subtask.inputs for sent in found.first] == [{"text": "one"}, {"text": "two"}]
    assert [step.name for step in made(split, inputs={"x": 1}).plan.steps] == ["report"]


FILE = """
from streams.router import decomposer

@decomposer("report", "summary")
def split(request):
    return [{"name": "s", "capability": "nlp/summarize"}]

same = split
"""


def test_from_a_file(tmp_path: Path):
    path = tmp_path / "splits.py"
    path.write_text(FILE)
    assert sorted(load_decomposers([str(path)])) == ["report", "summary"]
    # It is read anew each time: the rules file that names it may be reloaded.
    path.write_text(FILE.replace('"report", ', ""))
    assert sorted(load_decomposers([str(path)])) == ["summary"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "is not found"),
        ("x = 1", "marks no function"),
        ("import", "SyntaxError"),
        ("raise RuntimeError('x')", "RuntimeError"),
        (FILE + "\n@decomposer('report')\ndef again(request): ...\n", "two functions"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str | None, words: str):
    path = tmp_path / "splits.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DecomposerError, match=words):
        load_decomposers([str(path)])


def test_a_module_that_is_not_there():
    with pytest.raises(DecomposerError, match="no_such_module"):
        load_decomposers(["no_such_module"])


def test_marks_that_are_refused():
    with pytest.raises(DecomposerError, match="names a task"):
        decomposer()

    async def slow(request: Request) -> None: ...

    with pytest.raises(DecomposerError, match="async"):
        decomposer("t")(slow)  # type: ignore[type-var]

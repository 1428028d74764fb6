"""Reports of results, read as a browser and a Markdown reader read them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from edgeway.report import render
from edgeway.report.html import POLICY
from schemas.codec import decode
from schemas.messages import Decision, Failure, Model, Result, Timings, Verdict

SAMPLES = Path(__file__).parents[2] / "data" / "reports.jsonl"
CHINESE, ENGLISH = (decode(line, Result, "json") for line in SAMPLES.read_bytes().splitlines())
SHAPES = {"svg", "g", "path", "rect", "line", "text", "title"}
ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "section",
        "div",
        "figure",
        "svg",
        "g",
        "path",
    ),
    *(
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "p",
        "ul",
        "li",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "img",
    ),
    *("rect", "line", "text", "circle", "tspan", "defs", "clippath"),
}


class Page(HTMLParser):
    """The elements of a page with their attributes, its text, and which elements were left open."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data

    def check(self) -> Page:
        """Well formed, and nothing in it that acts or leads anywhere."""
        assert self.open == []
        for tag, attributes in self.elements:
            assert tag in ALLOWED, tag
            assert not any(
                name.startswith("on") or name in ("href", "style", "srcdoc") for name in attributes
            )
            assert all(
                "url(" not in (value or "") or "url(#" in (value or "") for value in attributes.values()
            )
            if "src" in attributes:
                assert (attributes["src"] or "").startswith("data:image/")
        return self


def html(result: Result, **more: Any) -> Page:
    return Page(render(result, "html", **more))


def kinds(markdown: str) -> list[str]:
    """The structure of a Markdown text: its tokens without their texts."""
    found = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown):
        found.append(token.type + token.tag)
        found += [
            child.type
            for child in token.children or ()
            if child.type not in ("text", "code_inline", "text_special")
        ]
    return found


def shown(markdown: str) -> str:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)
    return "".join(child.content for token in tokens for child in token.children or ())


@pytest.fixture(params=["vega", "own"])
def drawing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "own":
        monkeypatch.setattr("edgeway.report.drawing.find_spec", lambda name: None)
    return str(request.param)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (
            ENGLISH,
            ("Financial report", "Northwind Valley Instruments Inc.", "1,260,000,000 USD", "Gross margin"),
        ),
        (CHINESE, ("财报分析", "星河智造股份有限公司", "1,260,000,000 CNY", "毛利率", "处理过程")),
    ],
)
def test_the_financial_report_with_its_chart(result: Result, words: tuple[str, ...], drawing: str) -> None:
    page = html(result).check()
    text = render(result, "markdown")
    for word in (*words, "40.0 %"):
        assert word in page.text
        assert word in text
    shapes = [tag for tag, _ in page.elements if tag in ("rect", "path")]
    assert len(shapes) >= 8
    for label in {row["category"] for row in result.output["chart"]["data"]["values"]}:
        assert label in page.text


def test_both_say_how_it_was_answered() -> None:
    result = Result(
        id="r-1",
        status="partial",
        output={"a": 1},
        approximate=True,
        warnings=("possibly inaccurate (可能不准确)", "cached answer, 90 s old"),
        missing=("chart",),
        degraded=("cloud_slow", "stale_cache", "parts_missing"),
        decisions=(Decision(step="a", side="cloud", rule="fixed_side"),),
        cost=0.25,
        timings={"a": Timings(queue_ms=3, service_ms=12.4, total_ms=20_500)},
        models={"a": Model(name="fin-large", version="3")},
        sides={"a": "cloud"},
        error=Failure(code="deadline_exceeded", message="no answer within 5000 ms from: chart"),
        privacy=Verdict(level="high", reasons=("email",)),
        age_ms=90_000,
        confidence=0.75,
    )
    for text in (html(result).check().text, shown(render(result, "markdown"))):
        for word in (
            *(
                "possibly inaccurate (可能不准确)",
                "90 s old",
                "chart",
                "the cloud is slow",
                "an older answer",
            ),
            *(
                "0.25",
                "fin-large 3",
                "20.5 s",
                "90.0 s",
                "12 ms",
                "the cloud",
                "deadline_exceeded",
                "0.75",
                "high",
            ),
        ):
            assert word in text.replace("\\", ""), word


def test_any_output_is_shown() -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(8)
    output = {
        "labels": {"cat": 0.75, "dog": 0.25},
        "classes": [{"label": "cat", "score": 0.9}, {"label": "dog", "score": 0.1}],
        "rows": [{"name": "a", "n": 1}, {"name": "b", "n": 2.5, "deep": {"x": [1, {"y": None}]}}],
        "numbers": [float(n) for n in range(100)],
        "text": "First line\nsecond line\n\nNew paragraph",
        "nothing": None,
        "flag": True,
        "image": png,
        "raw": b"\x00\x01",
        "mixed": [1, "a", {"b": ["c" * 50, "d" * 50]}, [[]]],
    }
    page = html(Result(id="r", status="ok", task="vision/all", output=output)).check()
    for word in (
        "vision/all",
        "75.0 %",
        "90.0 %",
        "2.5",
        "76 more",
        "second line",
        "yes",
        "<2 bytes>",
        "d" * 50,
    ):
        assert word in page.text
    assert any(tag == "img" for tag, _ in page.elements)
    text = render(Result(id="r", status="ok", output=output), "markdown")
    assert "| cat | ███████████████ | 75.0 % |" in text
    assert "image/png, 16 bytes" in text


@pytest.mark.parametrize(
    "value", ["plain text", 12.5, None, [], {}, "مرحبا بالعالم", "שלום", b"x", True, ["a"], "0"]
)
def test_outputs_that_are_no_maps(value: Any) -> None:
    result = Result(id="r", status="ok", output=value)
    page = html(result).check()
    if isinstance(value, str):
        assert value in page.text
        assert value in shown(render(result, "markdown"))
    assert ("p", {"dir": "auto"}) in page.elements or isinstance(value, list)


def test_claims_are_told_and_linked_only_where_asked() -> None:
    claim = {
        "dataref": "s3://inner/secret-place",
        "sha256": "a" * 64,
        "size": 3 * 2**20,
        "content_type": "image/png",
    }
    inside = html(Result(id="r", status="ok", output={"picture": claim}), links=True).check()
    assert "3.0 MiB, image/png" in inside.text
    result = Result(id='a/b "c', status="ok", output=claim)
    for kind in ("html", "markdown"):
        plain = render(result, kind)  # type: ignore[arg-type]
        linked = render(result, kind, links=True)  # type: ignore[arg-type]
        assert "3.0 MiB" in plain
        assert "/requests/" not in plain
        assert "/requests/a%2Fb%20%22c/output" in linked
        assert "secret-place" not in plain + linked


def test_the_policy_forbids_all_but_its_own_style() -> None:
    page = html(ENGLISH)
    (policy,) = (at["content"] for tag, at in page.elements if tag == "meta" and "http-equiv" in at)
    assert policy == POLICY
    assert "default-src 'none'" in POLICY
    assert "script" not in POLICY
    assert "unsafe" not in POLICY


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></svg><script>alert(1)</script>",
    "[click](javascript:alert(1))",
    "![x](http://evil.example/x.png)",
    "<http://evil.example>",
    "http://evil.example/a|b",
    "www.evil.example someone@evil.example",
    "# heading",
    "- item",
    "1. item",
    "1) item",
    "+ item",
    "> quote",
    "```\ncode",
    "---",
    "===",
    "a | b | c",
    "|---|---|",
    "**bold** _it_ ~~gone~~ `code`",
    "a\\",
    "\\| x",
    "&lt;b&gt; &amp;",
    "[a]: http://evil.example",
    "    indented",
    "line\n# heading\n- item",
    "<!-- hidden -->",
    "\u202eevil\u202c \x1b[31mred \x00",
    "$x^2$ $$y$$",
    "[^1]: note",
    "term\n: definition",
    "\ud800",
]


def placed(text: str) -> Result:
    """A result with `text` wherever a worker, a caller or a producer can put one."""
    chart = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": text,
        "data": {"values": [{"category": text, "series": text, "value": 1.0, "currency": text}], "url": text},
        "mark": {"type": "bar", "href": text},
        "encoding": {"href": {"value": text}, "y": {"title": text}},
    }
    output = {
        "text": text,
        "map": {"key " + text: text, "deep": {"key": {text + "x": text}}},
        "rows": [{"column " + text: text}],
        "list": [text * 20, "b"],
        "labels": {"l" + text: 0.5, "other": 0.5},
        "chart": chart,
    }
    return Result(
        id="id " + text,
        status="partial",
        task="task " + text,
        output=output,
        warnings=("w " + text,),
        missing=("m " + text,),
        decisions=(Decision(step="s " + text, side="local", rule="r " + text, note=text),),
        timings={"s " + text: Timings(total_ms=5)},
        models={"s " + text: Model(name="n " + text, version=text)},
        error=Failure(code="deadline_exceeded", message=text),
        privacy=Verdict(level="high", reasons=("x " + text,)),
    )


def harmless(text: str) -> str:
    """As long, with the same line ends: what is long or has several lines is shown in another form."""
    return re.sub(r"\S", "w", text)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hostile_becomes_markup(text: str, drawing: str) -> None:
    page = html(placed(text)).check()
    likely = html(placed(harmless(text)))
    assert [tag for tag, _ in page.elements if tag not in SHAPES] == [
        tag for tag, _ in likely.elements if tag not in SHAPES
    ]
    assert "\u202e" not in page.text
    marked = kinds(render(placed(text), "markdown"))
    assert not any("link" in kind or "html" in kind or "image" in kind or "fence" in kind for kind in marked)
    assert marked == kinds(render(placed(harmless(text)), "markdown"))


def test_what_others_turn_into_links_stands_in_code() -> None:
    text = render(
        Result(id="r", status="ok", output="see http://evil.example/a|b and a@evil.example"), "markdown"
    )
    assert "see `http://evil.example/a¦b` and `a@evil.example`" in text


SIGNS = st.text(
    st.one_of(st.sampled_from("<>\"'&[]()!#*_`~|\\-+=:.1 \n\t$^{}@/w\u202e"), st.characters()),
    min_size=1,
    max_size=24,
)


@settings(max_examples=60, deadline=None)
@given(text=SIGNS)
def test_no_text_whatever_changes_the_structure(text: str) -> None:
    result = Result(id="r", status="ok", output={"a": text, "rows": [{"k": text, "n": 1}]}, warnings=(text,))
    plain = Result(
        id="r", status="ok", output={"a": "word", "rows": [{"k": "word", "n": 1}]}, warnings=("word",)
    )
    page, likely = html(result).check(), html(plain)
    assert len(page.elements) == len(likely.elements) or "\n" in text
    if "\n" not in text and "\r" not in text:
        assert kinds(render(result, "markdown")) == kinds(render(plain, "markdown"))


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=12),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(output=VALUES)
def test_every_output_has_a_report(output: Any) -> None:
    result = Result(id="r", status="ok", output=output)
    html(result).check()
    marked = kinds(render(result, "markdown"))
    assert not any("link" in kind or "html" in kind or "image" in kind for kind in marked)


@settings(max_examples=40, deadline=None)
@given(
    figures=st.dictionaries(st.text(max_size=5), VALUES, max_size=3),
    more=st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("growth", "ratios", "indicators", "chart", "entities", "companies"), VALUES),
    ),
)
def test_what_only_looks_like_a_financial_report(figures: dict[str, Any], more: dict[str, Any]) -> None:
    html(Result(id="r", status="ok", output={"figures": figures, "growth": {}, **more})).check()


def test_a_report_stays_readable_where_an_output_is_huge() -> None:
    rows = [{f"k{n}": "x" * 500 for n in range(20)} for _ in range(2000)]
    text = render(Result(id="r", status="ok", output={"rows": rows, "text": "long " * 100_000}), "html")
    assert len(text) < 1_500_000
    assert "1800 more are not shown" in text
    assert "more characters" in text

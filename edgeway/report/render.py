"""A result as a document, and the document written out."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

from edgeway.explain import explain
from edgeway.report import html, markdown
from edgeway.report.blocks import Block, Document, Facts, Items, Link, Note, Section, Table, Text
from edgeway.report.finance import financial, is_financial
from edgeway.report.values import Values
from edgeway.report.words import Language, cut, language_of, milliseconds, number, of_claim, shown, word
from schemas.claims import claim_of
from schemas.messages import Result, Side

Kind = Literal["markdown", "html"]


def render(result: Result, kind: Kind, *, title: str | None = None, links: bool = False) -> str:
    """The report of `result`: Markdown (CommonMark with tables), or an HTML page that loads nothing.

    Nothing in the result becomes markup, a link or a script. With `links` an output that lies elsewhere leads
    to `/requests/ID/output`, where a gateway serves both. Charts are drawn by vl-convert where it is
    installed (the first takes half a second), else by ourselves. Takes 1 to 100 ms of CPU: in an event loop,
    call it in a thread.
    """
    made = document(result, title=title, links=links)
    return markdown.write(made) if kind == "markdown" else html.write(made)


def document(result: Result, *, title: str | None = None, links: bool = False) -> Document:
    """The same before it is written."""
    output = result.output
    finance = is_financial(output)
    language = language_of(title or "", shown(output, most=5000) if finance else "")
    values = Values(language)
    found: list[Block] = list(_notes(result, language))
    claim = result.claim if output is None else claim_of(output)
    if claim is not None:
        whose = f"?tenant={quote(result.tenant)}" if result.tenant is not None else ""
        text, path = of_claim(claim, language), f"/requests/{quote(result.id, safe='')}/output{whose}"
        found.append(Link(text, path) if links else Text(text))
    elif output is not None:
        found += financial(output, values, language) if finance else values.blocks(output)
    elif result.error is None:
        found.append(Text(word("nothing", language)))
    found.append(Section(word("answered", language), tuple(_answered(result, language))))
    name = "financial_report" if finance else "report"
    heading = title or (word(name, language) if finance or not result.task else cut(result.task, 120))
    return Document(heading, tuple(found), language)


def _notes(result: Result, language: Language) -> list[Block]:
    """The status, and whatever a reader must know before he believes the rest."""
    found: list[Block] = []
    if result.status != "ok":
        said = f": {cut(result.error.message, 500)} ({result.error.code})" if result.error is not None else ""
        tone: Literal["bad", "warning"] = "bad" if result.status == "error" else "warning"
        found.append(Note(tone, word(result.status, language) + said))
    if result.missing:
        names = cut(", ".join(result.missing), 500)
        found.append(Note("warning", f"{word('missing', language)}: {names}"))
    found += [Note("warning", cut(text, 500)) for text in result.warnings[:20]]
    reasons = [word(reason, language) for reason in result.degraded]
    if reasons:
        found.append(Note("warning", f"{word('degraded', language)}: {', '.join(reasons)}"))
    return found


def _answered(result: Result, language: Language) -> list[Block]:
    facts = [
        (word("request", language), cut(result.id, 200)),
        (word("status", language), word(result.status, language)),
    ]
    if result.confidence is not None:
        facts.append((word("confidence", language), f"{result.confidence:.3g}"))
    total = max((timing.total_ms for timing in result.timings.values()), default=0.0)
    if total:
        facts.append((word("total", language), milliseconds(total)))
    facts.append((word("cost", language), number(result.cost)))
    if result.age_ms is not None:
        facts.append((word("age", language), milliseconds(float(result.age_ms))))
    if result.privacy is not None and result.privacy.level != "normal":
        facts.append(
            (word("privacy", language), ", ".join((result.privacy.level, *result.privacy.reasons[:20])))
        )
    found: list[Block] = [Facts(tuple(facts))]
    if result.timings or result.sides or result.models:
        found.append(_steps(result, language))
    lines = [cut(line, 1000) for line in explain(result)[:100]]
    return [*found, Items(tuple(lines))] if lines else found


def _steps(result: Result, language: Language) -> Table:
    keys = ("step", "side", "model", "waited", "took")
    names = list(dict.fromkeys((*result.sides, *result.timings, *result.models)))[:100]
    return Table(
        tuple(word(key, language) for key in keys),
        tuple(_step(result, name, language) for name in names),
        frozenset((3, 4)),
    )


def _step(result: Result, name: str, language: Language) -> tuple[str, ...]:
    side: Side | None = result.sides.get(name)
    model, timing = result.models.get(name), result.timings.get(name)
    return (
        cut(name, 100),
        word(side, language) if side else "",
        cut(f"{model.name} {model.version}", 100) if model else "",
        milliseconds(timing.queue_ms) if timing else "",
        milliseconds(timing.service_ms) if timing else "",
    )

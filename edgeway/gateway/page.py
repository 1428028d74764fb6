"""The page at /docs: the tasks of the rules, with a form to try them. It asks no other host for anything."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from schemas.rules import Rules
from schemas.rules_structs import TaskRule
from workers.http.page import POLICY, framed, token_field

__all__ = ["POLICY", "page"]


def page(rules: Rules, version: str, *, token: bool) -> str:
    """The page; `token` where calls need a bearer token."""
    tasks = sorted(rules.tasks.items())
    capabilities = "".join(
        f"<li><code>POST /{side}/{escape(name)}</code></li>" for side, name in rules.capabilities
    )
    body = (
        f"<p>{len(tasks)} tasks of the rules {escape(rules.version)}; as a document for tools: "
        '<a href="openapi.json">openapi.json</a>.</p>'
        f"{token_field(token)}{''.join(_article(name, rule) for name, rule in tasks)}"
        f"<article><h2>Single capabilities</h2><ul>{capabilities}</ul></article>"
    )
    return framed("Edgeway gateway", version, body)


def _article(name: str, rule: TaskRule) -> str:
    anchor = escape(name, quote=True)
    steps = ", ".join(f"{step.name} ({step.capability}, {step.side})" for step in rule.steps)
    facts = {"Steps": steps, "Phrases": ", ".join(rule.phrases)}
    told = "".join(f"<dt>{title}</dt><dd>{escape(text)}</dd>" for title, text in facts.items() if text)
    example: dict[str, Any] = {"task": name, "text": ""}
    return (
        f'<article id="{anchor}"><h2><span class="verb">POST</span><code>/route</code> {escape(name)}</h2>'
        f'<dl>{told}</dl><form data-path="/route"><label for="body-{anchor}">Body</label>'
        f'<textarea id="body-{anchor}" spellcheck="false">'
        f"{escape(json.dumps(example, indent=2, ensure_ascii=False))}</textarea>"
        '<button type="submit">Send</button><pre><output></output></pre></form></article>'
    )

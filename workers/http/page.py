"""The page at /docs: what is served, with a form to try it. It asks no other host for anything."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from typing import Any

from schemas.cards import Card
from workers.http.openapi import example
from workers.http.paths import full

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1rem;
color:#1a1a1a;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:0}code,pre,textarea{font:14px/1.4 ui-monospace,monospace}
article{border:1px solid #ccc;border-radius:6px;margin:1rem 0;padding:1rem}
.verb{background:#0b6b3a;color:#fff;border-radius:4px;padding:.1rem .4rem;margin-right:.5rem}
pre{background:#f4f4f4;padding:.6rem;overflow:auto;max-height:24rem;white-space:pre-wrap}
textarea,input{width:100%;box-sizing:border-box;border:1px solid #767676;border-radius:4px;padding:.4rem}
textarea{min-height:6rem}button{margin:.5rem 0;padding:.4rem 1rem}dt{font-weight:600}dd{margin:0 0 .3rem}
label{display:block;font-weight:600}.text{white-space:pre-line}
@media(prefers-color-scheme:dark){body{background:#161616;color:#eee}pre,textarea,input{background:#222;color:#eee}
article{border-color:#444}}
"""
_SCRIPT = """
for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const out = form.querySelector("output"), button = form.querySelector("button");
    const headers = {"Content-Type": "application/json"};
    const token = document.getElementById("token");
    if (token && token.value) headers.Authorization = "Bearer " + token.value;
    button.disabled = true;
    out.textContent = "asking ...";
    try {
      const body = form.querySelector("textarea").value;
      const answer = await fetch(form.dataset.path, {method: "POST", headers, body});
      const text = await answer.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch (error) { shown = text; }
      out.textContent = answer.status + " " + answer.statusText + "\\n" + shown;
    } catch (error) {
      out.textContent = "no answer: " + error.message;
    }
    button.disabled = false;
  });
}
"""


def _hash(text: str) -> str:
    return base64.b64encode(sha256(text.encode()).digest()).decode()


POLICY = (
    f"default-src 'none'; style-src 'sha256-{_hash(_STYLE)}'; script-src 'sha256-{_hash(_SCRIPT)}'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy that the page needs: nothing but its own two texts and its own origin."""


def framed(title: str, version: str, body: str) -> str:
    """A whole page around `body`, which is HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)} {escape(version)}</h1>{body}<script>{_SCRIPT}</script></body></html>"
    )


def token_field(asked: bool) -> str:
    """A field for the bearer token, where calls need one."""
    if not asked:
        return ""
    field = '<input id="token" type="password" autocomplete="off">'
    return f'<p><label for="token">Bearer token</label>{field}</p>'


def page(cards: Iterable[Card], version: str, *, token: bool) -> str:
    """The page; `token` where calls need a bearer token."""
    cards = sorted(cards, key=lambda card: (card.capability, card.side))
    links = "".join(
        f'<li><a href="#{escape(_anchor(card), quote=True)}"><code>{escape(_path(card))}</code></a> '
        f"{escape(card.description)}</li>"
        for card in cards
    )
    told = (
        f'<p>{len(cards)} served here; as a document for tools: <a href="openapi.json">openapi.json</a>. '
        "Each also answers under the end of its path where one alone has it.</p>"
    )
    body = f"{told}{token_field(token)}<ul>{links}</ul>{''.join(map(_article, cards))}"
    return framed("Edgeway worker", version, body)


def _article(card: Card) -> str:
    path, anchor = escape(_path(card), quote=True), escape(_anchor(card), quote=True)
    inputs = {name: value for name, value in card.input_schema.items() if name != "description"}
    text = str(card.input_schema.get("description") or card.description)
    facts = {
        "Model": f"{card.model} {card.version} ({card.model_type})",
        "Cost": f"{card.cost_per_call:g} a call, {card.cost_per_token:g} a token",
        "Licence": card.licence,
        "Source": card.source,
        "Quality": card.quality,
    }
    told = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts.items() if value)
    body = json.dumps(example(card.input_schema), indent=2, ensure_ascii=False)
    return (
        f'<article id="{anchor}"><h2><span class="verb">POST</span><code>{path}</code></h2>'
        f'<p class="text">{escape(text)}</p><dl>{told}</dl>'
        f"<details><summary>Inputs</summary><pre>{_pretty(inputs)}</pre></details>"
        f"<details><summary>Output</summary><pre>{_pretty(card.output_schema)}</pre></details>"
        f'<form data-path="{path}"><label for="body-{anchor}">Body</label>'
        f'<textarea id="body-{anchor}" spellcheck="false">{escape(body)}</textarea>'
        '<button type="submit">Send</button><pre><output></output></pre></form></article>'
    )


def _path(card: Card) -> str:
    return full((card.side, card.capability))


def _anchor(card: Card) -> str:
    return _path(card).strip("/").replace("/", "-")


def _pretty(schema: dict[str, Any]) -> str:
    return escape(json.dumps(schema, indent=2, ensure_ascii=False)) if schema else "not described"

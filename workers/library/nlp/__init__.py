"""Texts: cleaning, tokens, entities, summaries, intents, embeddings, answers."""

from __future__ import annotations

import logging
from importlib.util import find_spec

from workers.backends import Backend
from workers.backends.function import backends_of
from workers.library.text import clean

log = logging.getLogger(__name__)


def offers() -> list[Backend]:
    """What this group has to offer here; what needs a package not installed is left out and logged.

    Raises:
        LoadError: EDGEWAY_KB names nothing that is there.
    """
    from workers.library.nlp.entities import entities
    from workers.library.nlp.intent import intent_backend
    from workers.library.nlp.summarize import summarize
    from workers.library.nlp.tokenize import tokenize

    found = [backend for f in (clean, tokenize, entities, summarize) for backend in backends_of(f)]
    return [*found, intent_backend(), *_embed(), *_answer()]


def _embed() -> list[Backend]:
    lacking = [name for name in ("wordllama", "tokenizers", "safetensors") if find_spec(name) is None]
    if lacking:
        log.warning("local/nlp/embed is not offered: it needs %s; install edgeway[text]", ", ".join(lacking))
        return []
    from workers.library.nlp.embed import embed

    return list(backends_of(embed))


def _answer() -> list[Backend]:
    from workers.library.nlp.knowledge import KnowledgeBase, default_path

    path = default_path()
    if path is None:
        log.info("local/nlp/answer is not offered: EDGEWAY_KB names no folder or .jsonl file of documents")
        return []
    from workers.library.nlp.answer import answer_backend

    return [answer_backend(KnowledgeBase(path))]

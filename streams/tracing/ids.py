"""Trace contexts and span ids: pure, and derived, so that every process knows its parent without being told.

W3C Trace Context (https://www.w3.org/TR/trace-context/): `00-TRACE-PARENT-FLAGS`. All spans of a request
follow from the trace id and the scoped request id; a record that comes again gives the same ones.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

REQUEST, PLAN, RESULT = "request", "plan", "result"
"""The names of spans, beside those of `of_subtask` and `of_model`."""
_FORM = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_FLAG = 54
"""Where the lower digit of the flags stands; its last bit says `sampled`."""
_ODD = frozenset("13579bdf")


class Context(NamedTuple):
    """A trace (32 hex digits), a span in it, and whether somebody asked for its spans."""

    trace: str
    span: int
    sampled: bool

    def __str__(self) -> str:
        return f"00-{self.trace}-{self.span:016x}-{'01' if self.sampled else '00'}"


def parse(traceparent: str | None) -> Context | None:
    """What a traceparent says; None where it is absent or none. Of a later version the known part counts."""
    found = None if traceparent is None else _FORM.fullmatch(traceparent)
    if found is None or (found[1] == "00" and found[5]):
        return None
    return Context(found[2], int(found[3], 16), bool(int(found[4], 16) & 1))


def admitted(traceparent: str | None, scope: str, accepted: int, ratio: float) -> str:
    """The traceparent that a request is carried out under: the caller's, or a derived one.

    `scope` is the scoped id of the request, `accepted` its append time in ms, `ratio` the share of derived
    traces that are sampled.
    """
    context = parse(traceparent)
    return root(scope, accepted, ratio) if context is None else str(context)


def root(scope: str, accepted: int, ratio: float = 0.0) -> str:
    """The traceparent of a request that came without one. The trace id alone decides whether it is
    sampled."""
    digest = blake2b(b"%d/" % accepted + scope.encode("utf-8", "replace"), digest_size=16).hexdigest()
    # The W3C's level 2 calls the last 7 bytes random, and samplers elsewhere decide by them.
    is_sampled = ratio > 0.0 and int(digest[18:], 16) < ratio * (1 << 56)
    return f"00-{digest}-{digest[:16]}-{'01' if is_sampled else '00'}"


def is_root(context: Context) -> bool:
    """Whether `root` made it: then no span stands above that of the request."""
    return context.span == int(context.trace[:16], 16)


def is_sampled(traceparent: str | None) -> bool:
    """Whether somebody asked for the spans of a trace; of a traceparent that was read by `parse` once."""
    return traceparent is not None and traceparent[_FLAG : _FLAG + 1] in _ODD


class Spans:
    """The span ids of one request in its trace."""

    __slots__ = ("_base", "context")

    def __init__(self, context: Context, scope: str) -> None:
        self.context = context
        text = f"{context.trace}/{scope}".encode("utf-8", "replace")
        self._base = int.from_bytes(blake2b(text, digest_size=8).digest(), "big")

    def id(self, name: str) -> int:
        """The id of the span `name`."""
        return (self._base ^ _salt(name)) or 1

    def at(self, name: str) -> str:
        """The traceparent for what happens within the span `name`."""
        return str(self.context._replace(span=self.id(name)))


def sampled_spans(traceparent: str | None, scope: str) -> Spans | None:
    """The span ids of the request `scope`; None where nobody asked for them."""
    context = parse(traceparent) if is_sampled(traceparent) else None
    return None if context is None else Spans(context, scope)


def within(traceparent: str | None, scope: str, name: str) -> str | None:
    """The traceparent for what happens within the span `name` of the request `scope`. One that is not
    sampled has no spans, and is handed on as it is."""
    spans = sampled_spans(traceparent, scope)
    return traceparent if spans is None else spans.at(name)


def of_subtask(step: str, side: str, attempt: int) -> str:
    """The name of a subtask's span."""
    return f"{step}/{side}/{attempt}"


def of_model(step: str, side: str, attempt: int) -> str:
    """The name of the span of the model's run for a subtask."""
    return f"model:{step}/{side}/{attempt}"


@lru_cache(maxsize=4096)
def _salt(name: str) -> int:
    text = name.encode("utf-8", "replace")
    return int.from_bytes(blake2b(text, digest_size=8, person=b"span").digest(), "big")

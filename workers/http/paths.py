"""Paths to capabilities: `/local/nlp/summarize`, `/nlp/summarize` and `/summarize`."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.messages import Side
from workers.http.problems import Refused

Name = tuple[Side, str]


def full(name: Name) -> str:
    """`/local/nlp/summarize`."""
    return f"/{name[0]}/{name[1]}"


def found(path: str, names: Iterable[Name]) -> Name:
    """The one capability that `path` names, by its whole name, or by the end of it where one alone has it.

    Raises:
        Refused: 404; it lists what there is.
    """
    wanted = "/" + path.strip("/")
    names = sorted(names)
    exact = [name for name in names if full(name) == wanted]
    chosen = exact or [name for name in names if full(name).endswith(wanted) and wanted != "/"]
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        raise Refused("unknown_capability", f"several have this name: {_listed(chosen)}; give one of them")
    raise Refused("unknown_capability", f"nothing of this name is served here; there are {_listed(names)}")


def _listed(names: Iterable[Name]) -> str:
    return ", ".join(full(name) for name in names) or "none"

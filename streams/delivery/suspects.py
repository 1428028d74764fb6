"""Suspects: a record that kills its process must not do so for ever. Pure.

The commit carries a note. Ordinary progress writes the frontier; the first hand-out after an assignment
counts how often the same frontier was assigned after an unclean end; a record handled alone is named before
its handler sees it. Whoever is assigned a partition whose note names a record knows that this record was
being handled, alone, when the process died. A lane that is handed over by a living process, or whose records
no agent has seen, accuses nobody: its note says what the lane itself was told.
"""

from __future__ import annotations

from dataclasses import dataclass

ALONE_FROM = 2
"""From the second unclean assignment of the same frontier on, records are handled one by one."""


MOST_CONDEMNED = 64
_DIGITS = 19
"""Of the largest offset."""


@dataclass(frozen=True, slots=True)
class Note:
    """What the metadata of a commit says.

    `frontier`: first offset that no process has handled; `unclean`: assignments of it after an unclean end;
    `alone`: the offset handled alone when the note was written; `clean`: no end of a process stands against
    any record; `condemned`: offsets that were dead-lettered although the watermark has not passed them.
    """

    frontier: int = -1
    unclean: int = 0
    alone: int = -1
    clean: bool = False
    condemned: tuple[int, ...] = ()

    def text(self) -> str:
        """At most 1,500 ASCII characters; a broker takes 4,096."""
        parts = ["clean"] if self.clean else [f"f{self.frontier}"]
        if self.unclean:
            parts.append(f"n{self.unclean}")
        if self.alone >= 0:
            parts.append(f"a{self.alone}")
        parts += [f"x{offset}" for offset in self.condemned[-MOST_CONDEMNED:]]
        return ";".join(parts)


def parse(text: str) -> Note:
    """The note in `text`; whatever it cannot read (another tool's commit) counts as an orderly hand-over."""
    values: dict[str, int] = {}
    condemned = []
    for part in text.split(";"):
        name, digits = part[:1], part[1:]
        if name in ("f", "n", "a") and digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS:
            values[name] = int(digits)
        elif name == "x" and digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS:
            condemned.append(int(digits))
    if text.split(";")[0] == "clean":
        return Note(clean=True, condemned=tuple(condemned))
    if "f" not in values:
        return Note(clean=True)
    return Note(values["f"], values.get("n", 0), values.get("a", -1), condemned=tuple(condemned))


@dataclass(frozen=True, slots=True)
class Suspicion:
    """How a lane starts after its assignment: how often its first record that nobody has handled
    (`frontier`) was tried, the record found guilty (-1: none), and those condemned before."""

    unclean: int = 0
    guilty: int = -1
    frontier: int = -1
    condemned: frozenset[int] = frozenset()

    @property
    def alone(self) -> bool:
        """Whether records are handled one by one."""
        return self.unclean >= ALONE_FROM


def suspicion(note: Note, start: int) -> Suspicion:
    """What `note`, found at the assignment of a lane that starts at offset `start`, says."""
    condemned = frozenset(offset for offset in note.condemned if offset >= start)
    if note.clean:
        return Suspicion(frontier=start, condemned=condemned)
    guilty = note.alone if note.alone >= start else -1
    return Suspicion(note.unclean + 1, guilty, max(start, note.frontier), condemned)

"""Examines payloads: what they declare, what the detectors find, and whether a mask makes them safe."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from schemas.messages import Examination, Request, Verdict
from streams import metrics
from streams.privacy.detectors import BUILT_IN, UnknownDetector, load
from streams.privacy.finding import KINDS, Detector, Finding, TextReader
from streams.privacy.masks import conceal, mask_for
from streams.privacy.texts import MAX_CHARS, Texts, Unexaminable
from streams.privacy.verdict import DECLARED_HIGH, NORMAL, UNDECIDED
from streams.strangers import RAISED

__all__ = ["Examiner", "UnknownDetector", "examiner_of"]

MAX_SECONDS = 2.0
"""Processor time for one payload; what takes longer stays local."""

_MASKINGS = 3
_OPAQUE = re.compile(r"(?=.*[A-Za-z])[\w.:/#|~=-]*|\d*", re.ASCII)
_DEFAULT = Examination()

_LABELS = KINDS | {"too_long", "too_deep", "too_slow", "unknown_type", "verdict_failed"}

log = logging.getLogger(__name__)


class Examiner:
    """A Judge of requests and of what subtasks carry. Keeps nothing of what it saw."""

    def __init__(
        self, detectors: Sequence[Detector | TextReader], examination: Examination = _DEFAULT
    ) -> None:
        self._detectors = tuple(found for found in detectors if isinstance(found, Detector))
        self._readers = tuple(found for found in detectors if isinstance(found, TextReader))
        self._may_mask = frozenset(examination.mask)
        self._ignored = frozenset(examination.ignore)

    def __call__(self, request: Request) -> Verdict:
        """The verdict on a request: `declared` where it says so itself, else what is found in it.

        Its id and tenant are examined too, for every subtask carries them, unless they are made of letters
        and digits as machines make them. They cannot be masked.
        """
        if request.privacy != "normal":
            return DECLARED_HIGH
        named = [name for name in (request.id, request.tenant) if name and not _OPAQUE.fullmatch(name)]
        if named:
            verdict = self.examine(*named)
            if verdict.level != "normal":
                return Verdict(level="high", reasons=verdict.reasons)
        return self.examine(request.query, request.inputs, request.params)

    def examine(self, *parts: Any) -> Verdict:
        """The verdict on a payload. Never raises: whatever goes wrong makes it `high`."""
        if not self._detectors:
            return NORMAL
        started = time.thread_time()
        verdict = self._safely(parts)
        metrics.PRIVACY_S.observe(time.thread_time() - started)
        metrics.PRIVACY_VERDICTS.labels(verdict.level).inc()
        for reason in verdict.reasons:
            metrics.PRIVACY_FINDINGS.labels(reason if reason in _LABELS else "other").inc()
        return verdict

    def findings(self, *parts: Any) -> list[Finding]:
        """All that is found in a payload, each kind and text once, in the order of the detectors.

        Raises:
            Unexaminable: it is too long, too deep, or takes too long.
        """
        found: dict[tuple[str, str], Finding] = {}
        for layer in self._layers(parts):
            for finding in layer:
                found.setdefault((finding.kind, finding.text), finding)
        return list(found.values())

    def mask(self, *parts: Any) -> dict[str, str]:
        """Placeholder to original for every finding that may be masked: equal parts, equal mask. Whether
        enough is masked, `examine` says of the concealed parts.

        Raises:
            Unexaminable: as `findings`.
        """
        wanted: dict[str, str] = {}
        concealed: tuple[Any, ...] = parts
        mask: dict[str, str] = {}
        for _ in range(_MASKINGS):
            new = [one for one in self.findings(*concealed) if one.kind in self._may_mask]
            if not new:
                break
            for finding in sorted(new, key=lambda one: -len(one.text)):
                wanted.setdefault(finding.text, finding.kind)
                # A text was examined behind its key; of what reaches back into the key, the value's part.
                wanted.setdefault(finding.text.split(": ", 1)[-1], finding.kind)
            mask = mask_for((kind, text) for text, kind in wanted.items())
            concealed = tuple(conceal(part, mask) for part in parts)
        return mask

    def _safely(self, parts: tuple[Any, ...]) -> Verdict:
        try:
            return self._examined(parts)
        except Unexaminable as error:
            return Verdict(level="high", reasons=(error.reason,))
        except KeyboardInterrupt:
            raise
        except RAISED as error:  # a detector's error means local; its text may quote the payload
            log.error("the examination failed (%s); the payload stays local", type(error).__name__)
            return UNDECIDED

    def _examined(self, parts: tuple[Any, ...]) -> Verdict:
        found: list[Finding] = []
        for layer in self._layers(parts):
            found += layer
            if found and not self._may_mask:
                break
        if not found:
            return NORMAL
        return Verdict(
            level="high",
            reasons=tuple(sorted({finding.kind for finding in found})),
            masked=self._is_covered(found) and self._can_be_masked(parts),
        )

    def _is_covered(self, found: Sequence[Finding]) -> bool:
        """Whether each finding may be masked, or is part of one that may, as a name in an e-mail address."""
        hidden = {one.text for one in found if one.kind in self._may_mask}
        others = {one.text for one in found if one.kind not in self._may_mask}
        return bool(hidden) and all(
            any(other != text and other in text for text in hidden) for other in others
        )

    def _can_be_masked(self, parts: tuple[Any, ...]) -> bool:
        mask = self.mask(*parts)
        return not any(True for layer in self._layers(tuple(conceal(part, mask) for part in parts)) if layer)

    def _layers(self, parts: tuple[Any, ...]) -> Iterator[list[Finding]]:
        """The findings of one detector after the other; the texts are collected once."""
        ends = time.thread_time() + MAX_SECONDS
        walk = Texts(self._read if self._readers else None, MAX_CHARS)
        texts = list(dict.fromkeys(text for part in parts for text in walk.of(part)))
        for detector in self._detectors:
            found: list[Finding] = []
            for text in texts:
                found += [one for one in detector.find(text) if one.kind not in self._ignored]
                if time.thread_time() > ends:
                    raise Unexaminable("too_slow")
            yield found

    def _read(self, data: bytes) -> str | None:
        texts = [text for reader in self._readers if (text := reader.read(data)) is not None]
        return "\n".join(texts) if texts else None


@lru_cache(maxsize=16)
def examiner_of(examination: Examination) -> Examiner:
    """The examiner that works as `examination` says; equal ones share one.

    Raises:
        UnknownDetector: a name that is not built in and cannot be loaded.
    """
    names = BUILT_IN if examination.detectors is None else examination.detectors
    return Examiner([load(name) for name in names], examination)

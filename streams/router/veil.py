"""What the cloud gets of a request whose findings may be masked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from schemas.messages import Claim, Request, Verdict
from streams.claims.loading import swapped
from streams.privacy.masks import conceal


class Examines(Protocol):
    """What the router asks of an examiner (streams.privacy.examiner)."""

    def __call__(self, request: Request, /) -> Verdict: ...
    def examine(self, *parts: Any) -> Verdict: ...
    def mask(self, *parts: Any) -> dict[str, str]: ...


class Veil:
    """The mask of one request over what its steps carry; `params` are the request's, concealed; `found` is
    what its claims stand for."""

    def __init__(
        self,
        examiner: Examines,
        mask: Mapping[str, str],
        params: Mapping[str, Any],
        found: Mapping[Claim, Any] | None = None,
    ) -> None:
        self._found = found
        self._examiner = examiner
        self._mask = mask
        self.params: dict[str, Any] = conceal(dict(params), mask)

    def over(self, inputs: dict[str, Any]) -> tuple[dict[str, Any], Verdict]:
        """`inputs` concealed, and the verdict on what a subtask with them carries: `normal` where the mask
        hides all that is found, else `high`, so that the step stays local."""
        sealed: dict[str, Any] = conceal(inputs, self._mask)
        seen = sealed if self._found is None else conceal(swapped(inputs, self._found), self._mask)
        verdict = self._examiner.examine(seen, self.params)
        if verdict.level != "normal" and verdict.masked:
            # A mask over the mask would be no way back.
            return sealed, Verdict(level=verdict.level, reasons=verdict.reasons)
        return sealed, verdict

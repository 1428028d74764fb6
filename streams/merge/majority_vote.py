"""Majority vote: the output that most weight stands behind."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from streams.merge.parts import Merged, Part, ballot, certainty, distinct, is_map, weight


def majority_vote(parts: Sequence[Part], params: Mapping[str, Any]) -> Merged:
    """The most voted output; a part votes with its step's weight (1 where it has none).

    What is compared is the whole output, or of maps the value under the key that `params.key` names; the
    output is that of the most confident voter of the winning side, ties by step name.
    Conflict: most weight wins, ties by the higher summed confidence, then by the bytes of the vote.
    Missing parts: do not vote; a part whose map lacks the key neither, and where no part can vote all
    outputs are compared.
    Confidence: the winner's share of the votes cast.
    """
    present = distinct(parts)
    key = params.get("key")
    voters = [part for part in present if key is None or (is_map(part.output) and key in part.output)]
    if not voters:
        key, voters = None, list(present)
    votes: dict[bytes, list[Part]] = defaultdict(list)
    for part in voters:
        votes[ballot(part.output if key is None else part.output[key])].append(part)
    winner = min(votes, key=lambda vote: (-_weight(votes[vote]), -_certainty(votes[vote]), vote))
    speaker = min(votes[winner], key=lambda part: (-certainty(part), part.step))
    total = _weight(voters)
    return Merged(speaker.output, _weight(votes[winner]) / total if total else None)


def _weight(parts: Sequence[Part]) -> float:
    return math.fsum(weight(part) for part in parts)


def _certainty(parts: Sequence[Part]) -> float:
    return math.fsum(certainty(part) for part in parts)

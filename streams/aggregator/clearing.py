"""What a later subtask may carry to the cloud, and the verdict on exactly that. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from schemas.messages import Examination, Plan, Step, Verdict
from streams.privacy.examiner import UnknownDetector, examiner_of
from streams.privacy.masks import BadMask, conceal
from streams.privacy.verdict import UNDECIDED

_DEFAULT = Examination()


class Load(NamedTuple):
    """Inputs and params as they are to be sent, and the verdict on them."""

    inputs: dict[str, Any]
    params: dict[str, Any]
    verdict: Verdict


def must_be_examined(plan: Plan, step: Step) -> bool:
    """Whether the router has not examined what `step` sends to the cloud as it is sent: it holds outputs of
    earlier steps, or has to be masked again."""
    verdict = plan.request.privacy
    if not verdict.cloud_allowed:
        return False  # nothing leaves, whatever it is
    return verdict.level != "normal" or any(ref.startswith("steps.") for ref in step.inputs.values())


def load_for_cloud(plan: Plan, step: Step, inputs: dict[str, Any]) -> Load:
    """The load of one cloud subtask. A request that may only leave masked is masked; findings that the mask
    does not cover make the verdict `high`, and so does an examination that fails."""
    params, verdict = plan.params, plan.request.privacy
    if not must_be_examined(plan, step):
        return Load(inputs, params, verdict)
    try:
        examiner = examiner_of(plan.examination or _DEFAULT)
        if verdict.level != "normal":
            inputs, params = conceal(inputs, plan.mask), conceal(params, plan.mask)
    except (UnknownDetector, BadMask):
        return Load(inputs, params, UNDECIDED)
    return Load(inputs, params, examiner.examine(inputs, params))

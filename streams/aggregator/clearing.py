"""What a later subtask may carry to the cloud, and the verdict on exactly that."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from schemas.messages import Examination, Plan, Step, Verdict
from streams.claims import Objects, ObjectUnreadable, StoreAway
from streams.claims.loading import holds_claims, load, ship, swapped
from streams.privacy.examiner import UnknownDetector, examiner_of
from streams.privacy.masks import BadMask, conceal
from streams.privacy.verdict import UNDECIDED

_DEFAULT = Examination()
WAIT_S = 2.0
"""What reading, and what copying the objects of one subtask may take: others wait behind it."""
MOST_READ = 16 * 1024 * 1024


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


async def claimed_load(plan: Plan, step: Step, inputs: dict[str, Any], objects: Objects) -> Load:
    """The load of one cloud subtask with claims among its inputs: what they stand for is examined with the
    rest, and copied to the cloud's store as it may leave.

    Raises:
        ClaimError: it could not be read, or not be copied; nothing may be sent then.
    """
    request = plan.request
    if not request.privacy.cloud_allowed:
        return Load(inputs, plan.params, request.privacy)
    if objects.cloud is None:
        raise StoreAway("its inputs lie in an object store, and there is none that the cloud reads")
    if holds_claims(plan.params):
        raise ObjectUnreadable("a claim among its params, which nobody reads")
    found = await load(inputs, objects, tenant=request.tenant, wait_s=WAIT_S, limit=MOST_READ)
    mask = plan.mask if request.privacy.level != "normal" else {}
    try:
        examiner = examiner_of(plan.examination or _DEFAULT)
        sealed, params = conceal(inputs, mask), conceal(plan.params, mask)
        seen = await asyncio.to_thread(conceal, swapped(inputs, found), mask)
    except (UnknownDetector, BadMask):
        return Load(inputs, plan.params, UNDECIDED)
    verdict = await asyncio.to_thread(examiner.examine, seen, params)
    if verdict.level == "normal":
        sealed = await ship(
            sealed,
            found,
            objects,
            tenant=request.tenant,
            wait_s=WAIT_S,
            seal=lambda value: conceal(value, mask),
        )
    return Load(sealed, params, verdict)


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

"""Claims among values: what lies there in their place, and copies of it in the cloud's store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from schemas.claims import as_value, claim_of, claims_in
from schemas.errors import Malformed
from schemas.messages import Claim
from streams.claims.errors import ClaimError, ObjectTooLarge, ObjectUnreadable, StoreAway
from streams.claims.objects import Objects
from streams.claims.ports import MAX_OBJECT_BYTES
from streams.claims.values import known_type, object_of, value_of

Found = Mapping[Claim, Any]
MOST_CLAIMS = 64
"""Claims in the inputs of one request or subtask."""
ON_LOOP = 16_384
"""Objects up to this size are decoded on the event loop."""


def holds_claims(value: Any) -> bool:
    """Whether there is any claim in `value`."""
    return next(claims_in(value), None) is not None


def size_of_claims(value: Any) -> int:
    """Bytes of all that the claims in `value` stand for, as they say."""
    return sum(claim.size for claim in claims_in(value))


async def load(
    inputs: Mapping[str, Any],
    objects: Objects,
    *,
    tenant: str | None,
    wait_s: float,
    limit: int = MAX_OBJECT_BYTES,
) -> dict[Claim, Any]:
    """What the claims among `inputs` stand for, `limit` bytes in all; each object is read once.

    Raises:
        ClaimError: one of them cannot be had within `wait_s`; the message names its input.
    """
    wanted: dict[Claim, str] = {}
    for name, value in inputs.items():
        for claim in claims_in(value):
            wanted.setdefault(claim, name)
    if len(wanted) > MOST_CLAIMS:
        raise ObjectTooLarge(f"{len(wanted)} claims among the inputs; at most {MOST_CLAIMS} are read")
    size = sum(claim.size for claim in wanted)
    if size > limit:
        raise ObjectTooLarge(f"the claims among the inputs are of {size} bytes; at most {limit} are read")
    try:
        async with asyncio.timeout(wait_s):
            values = await asyncio.gather(
                *(_value(claim, name, objects, tenant, limit) for claim, name in wanted.items())
            )
    except TimeoutError as error:
        raise StoreAway(f"the objects could not be read within {wait_s:g} s") from error
    return dict(zip(wanted, values, strict=True))


async def _value(claim: Claim, name: str, objects: Objects, tenant: str | None, limit: int) -> Any:
    try:
        data = await objects.get(claim, tenant=tenant, limit=limit)
        if len(data) <= ON_LOOP:
            return value_of(data, claim.content_type)
        return await asyncio.to_thread(value_of, data, claim.content_type)
    except ClaimError as error:
        raise type(error)(f"input {name}: {error}") from error


def swapped(value: Any, found: Found) -> Any:
    """`value` with each claim replaced by what was found for it, None where nothing was."""
    kind = type(value)
    if kind is dict:
        claim = claim_of(value) if "dataref" in value else None
        if claim is not None:
            return found.get(claim)
        return {name: swapped(item, found) for name, item in value.items()}
    if kind is list or kind is tuple:
        return [swapped(item, found) for item in value]
    return value


async def ship(
    inputs: dict[str, Any],
    found: Found,
    objects: Objects,
    *,
    tenant: str | None,
    wait_s: float,
    seal: Callable[[Any], Any] = lambda value: value,
) -> dict[str, Any]:
    """`inputs` with claims of copies in the cloud's store, made of what was `found` and sealed.

    Raises:
        ClaimError: a copy could not be written within `wait_s`, or a claim was not found.
    """
    copies: dict[Claim, Claim] = {}
    try:
        async with asyncio.timeout(wait_s):
            for claim in dict.fromkeys(claims_in(inputs)):
                copies[claim] = await _copy(claim, found, objects, tenant, seal)
    except TimeoutError as error:
        raise StoreAway(f"the objects could not be copied to the cloud within {wait_s:g} s") from error
    return {
        name: swapped(value, {c: as_value(copy) for c, copy in copies.items()})
        for name, value in inputs.items()
    }


async def _copy(
    claim: Claim, found: Found, objects: Objects, tenant: str | None, seal: Callable[[Any], Any]
) -> Claim:
    if objects.cloud is None:
        raise StoreAway("there is no object store for the cloud; give --cloud-objects")
    if claim not in found:
        raise ObjectUnreadable("an object was not read and examined")
    value = found[claim]
    sealed = seal(value)
    if (
        sealed == value
        and objects.is_cloud(claim.dataref)
        and known_type(claim.content_type) == claim.content_type
    ):
        return claim
    try:
        data, content_type = await asyncio.to_thread(object_of, sealed, known_type(claim.content_type))
    except Malformed as error:
        raise ObjectUnreadable(str(error)) from error
    return await objects.cloud.put(data, content_type=content_type, tenant=tenant)

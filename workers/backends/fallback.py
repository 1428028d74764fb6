"""The cloud capabilities that rules put behind a `fallback_url`, as backends that follow the rules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from schemas.cards import Card
from schemas.messages import Side
from schemas.rules import Rules, TaskRule
from schemas.rules_structs import Price
from workers.backends.http import HttpBackend
from workers.errors import AppError

log = logging.getLogger(__name__)

BATCH = 16
"""How many calls go side by side, where the task gives no `cloud_batch_size`."""


class Endpoint(NamedTuple):
    """A capability's card and where it is asked."""

    card: Card
    url: str


class FallbackBackend(HttpBackend):
    """An HTTP backend that rules made, and may point elsewhere."""


def endpoints_of(rules: Rules) -> dict[str, Endpoint]:
    """By capability: each step that may run in the cloud of a task with `fallback_url`.

    Raises:
        AppError: two tasks of one capability name different URLs.
    """
    found: dict[str, Endpoint] = {}
    owners: dict[str, str] = {}
    for name, task in rules.tasks.items():
        if task.fallback_url is None:
            continue
        for step in task.steps:
            if step.side == "local":
                continue
            made = Endpoint(_card(step.capability, task, rules), task.fallback_url)
            known = found.setdefault(step.capability, made)
            owner = owners.setdefault(step.capability, name)
            if known.url != made.url:
                raise AppError(
                    f"tasks {owner!r} and {name!r} give cloud/{step.capability} two fallback_urls; keep one"
                )
    return found


def fallbacks_of(rules: Rules, taken: Container[tuple[Side, str]] = ()) -> list[FallbackBackend]:
    """A backend for each of `endpoints_of`, but for those that are `taken` by an app.

    Raises:
        AppError: as `endpoints_of`.
        LoadError: a URL that is none.
    """
    return [
        FallbackBackend(endpoint.card, endpoint.url)
        for capability, endpoint in endpoints_of(rules).items()
        if ("cloud", capability) not in taken
    ]


def follow(backends: Sequence[FallbackBackend], rules: Rules) -> Callable[[], None]:
    """Checks new rules; what is given makes the backends follow them.

    Raises:
        AppError, LoadError: as `fallbacks_of`.
    """
    endpoints = endpoints_of(rules)
    for endpoint in endpoints.values():
        HttpBackend(endpoint.card, endpoint.url)

    def adopt() -> None:
        for backend in backends:
            capability = backend.card.capability
            endpoint = endpoints.get(capability)
            if endpoint is None:
                log.warning("the rules name no fallback_url for cloud/%s any more", capability)
                backend.point(backend.card, None)
            else:
                backend.point(endpoint.card, endpoint.url)

    return adopt


def _card(capability: str, task: TaskRule, rules: Rules) -> Card:
    price = rules.prices.get(f"cloud/{capability}", Price())
    return Card(
        capability=capability,
        side="cloud",
        version="1",
        model=f"{capability.replace('/', '-')}-fallback",
        model_type="http",
        cost_per_call=price.per_call,
        cost_per_token=price.per_1k_tokens / 1000,
        max_cost=price.bound,
        max_batch=task.cloud_batch_size or BATCH,
        description="the fallback_url of the rules",
    )

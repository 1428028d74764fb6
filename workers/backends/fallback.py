"""The cloud capabilities that rules put behind a `fallback_url`, as backends that follow the rules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

from schemas.cards import Card
from schemas.messages import Side
from schemas.rules import Rules, TaskRule
from schemas.rules_structs import Price
from workers.backends.http import HttpBackend
from workers.backends.remote_keys import Key, Keys
from workers.errors import LoadError

log = logging.getLogger(__name__)

BATCH = 16
"""How many calls go side by side, where the task gives no `cloud_batch_size`."""


class Endpoint(NamedTuple):
    """A capability's card, where it is asked, and the environment variables of the headers it wants."""

    card: Card
    url: str
    headers: Mapping[str, str] = {}

    @property
    def keys(self) -> Keys:
        return Keys({name: Key(env=variable) for name, variable in self.headers.items()})


class FallbackBackend(HttpBackend):
    """An HTTP backend that rules made; it goes where they point."""

    def prepare(self, rules: Rules) -> Callable[[], None]:
        """What makes it follow `rules`.

        Raises:
            LoadError: as `fallbacks_of`, or a header whose environment variable is not set.
        """
        capability = self.card.capability
        endpoint = endpoints_of(rules).get(capability)
        if endpoint is not None:
            HttpBackend(endpoint.card, endpoint.url)
            try:
                endpoint.keys.headers()
            except LoadError as error:
                raise LoadError(f"{capability}: {error}") from error

        def adopt() -> None:
            if endpoint is None:
                log.warning("the rules name no fallback_url for cloud/%s any more", capability)
                self.point(self.card, None)
            else:
                self.point(endpoint.card, endpoint.url, endpoint.keys)

        return adopt


def endpoints_of(rules: Rules) -> dict[str, Endpoint]:
    """By capability: each step that may run in the cloud of a task with `fallback_url`.

    That a capability has one URL alone is checked where the rules are read.
    """
    return {
        step.capability: Endpoint(
            _card(step.capability, task, rules), task.fallback_url, task.fallback_headers
        )
        for task in rules.tasks.values()
        for step in task.steps
        if task.fallback_url is not None and step.side != "local"
    }


def fallbacks_of(rules: Rules, taken: Container[tuple[Side, str]] = ()) -> list[FallbackBackend]:
    """A backend for each of `endpoints_of`, but for those that are `taken` by an app.

    Raises:
        LoadError: a URL that is none.
    """
    return [
        FallbackBackend(endpoint.card, endpoint.url, keys=endpoint.keys)
        for capability, endpoint in endpoints_of(rules).items()
        if ("cloud", capability) not in taken
    ]


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

"""A model of a repository in the place of its backend, until that is pulled and ready."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from schemas.cards import Card
from workers.backends import Answer, Row
from workers.errors import LoadError
from workers.models.manifest import Active


class Pending:
    """The capability of `card`, of the model `name`; it takes no rows. `active` is what was active when the
    repository was read, None where it could not be.
    """

    def __init__(self, card: Card, name: str, active: Active | None, threads: int = 1) -> None:
        self.card = card
        self.name = name
        self.active = active
        self.threads = threads

    async def load(self) -> None:
        """There is nothing to load yet."""

    def kin(self, row: Row) -> Hashable:
        return ()

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        raise LoadError(f"{self.card.capability} is not ready: its model is being pulled")

    def close(self) -> None:
        """There is nothing to close."""

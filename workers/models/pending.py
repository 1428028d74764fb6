"""A model of a repository in the place of its backend, until that is pulled and ready."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from schemas.cards import Card
from schemas.rules import Rules
from workers.backends import Answer, Backend, Row, RulesFollower
from workers.errors import LoadError
from workers.models.manifest import Active


class Pending:
    """The capability of `card`, of the model `name`; it takes no rows. `active` is what was active when the
    repository was read, None where it could not be.

    It follows the rules for whatever backend stands in its place.
    """

    def __init__(self, card: Card, name: str, active: Active | None, threads: int = 1) -> None:
        self.card = card
        self.name = name
        self.active = active
        self.threads = threads
        self._rules: Rules | None = None
        self._backend: Backend | None = None

    async def load(self) -> None:
        """There is nothing to load yet."""

    def kin(self, row: Row) -> Hashable:
        return ()

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        raise LoadError(f"{self.card.capability} is not ready: its model is being pulled")

    def replaced(self, backend: Backend) -> None:
        """`backend` stands in its place from now on."""
        self._backend = backend
        if self._rules is not None:
            _prepared(backend, self._rules)()

    def prepare(self, rules: Rules) -> Callable[[], None]:
        """Raises WorkerError: the backend of now cannot follow `rules`."""
        asked, adopt_backend = self._backend, _prepared(self._backend, rules)

        def adopt() -> None:
            self._rules = rules
            now = self._backend
            # Another may have taken its place since the rules were looked at.
            (adopt_backend if now is asked else _prepared(now, rules))()

        return adopt

    def close(self) -> None:
        """There is nothing to close."""


def _prepared(backend: object, rules: Rules) -> Callable[[], None]:
    return backend.prepare(rules) if isinstance(backend, RulesFollower) else lambda: None

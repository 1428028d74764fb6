"""Who calls, by bearer tokens, and how fast each may."""

from __future__ import annotations

from hashlib import sha256

from edgeway.gateway.problems import refused
from schemas.rules import Rules
from schemas.rules_structs import TenantRule
from streams.registry.pace import Pace
from workers.http.problems import Refused

_NOBODY = TenantRule()


class Tenants:
    """What the rules say of tenants. Without a single token in them everybody may call, as whom he likes."""

    def __init__(self, rules: Rules) -> None:
        self.adopt(rules)

    def adopt(self, rules: Rules) -> None:
        """Follow `rules` from now on; a pace that is limited still keeps its place."""
        self._rules = rules.tenants
        self._tokens = {
            bytes.fromhex(text.removeprefix("sha256:")): name
            for name, rule in rules.tenants.items()
            for text in rule.tokens
        }
        paces = getattr(self, "_paces", {})
        limits = {name: rule.max_qps for name, rule in rules.tenants.items() if rule.max_qps is not None}
        self._paces: dict[str, Pace] = {name: paces.get(name) or Pace(rate) for name, rate in limits.items()}
        for name, rate in limits.items():
            self._paces[name].rate = rate

    @property
    def closed(self) -> bool:
        """Whether calls need a token."""
        return bool(self._tokens)

    def rule(self, tenant: str | None) -> TenantRule:
        """What holds for `tenant`."""
        return _NOBODY if tenant is None else self._rules.get(tenant, _NOBODY)

    def caller(self, authorization: str) -> str | None:
        """The tenant whose token the header brings; None where no tokens are asked for.

        Raises:
            Refused: 401.
        """
        if not self._tokens:
            return None
        scheme, _, given = authorization.partition(" ")
        # Headers are bytes, which are read as Latin-1. What is looked up is a hash that nobody can steer: the
        # time of the look-up tells of no token.
        digest = sha256(given.strip().encode("latin-1", "replace")).digest()
        tenant = self._tokens.get(digest)
        if tenant is not None and scheme.lower() == "bearer":
            return tenant
        raise Refused(
            "invalid_request",
            "send a token of a tenant as Authorization: Bearer TOKEN",
            status=401,
            title="No valid token",
            headers=(("WWW-Authenticate", "Bearer"),),
        )

    def require(self, caller: str | None, named: str | None) -> str | None:
        """The tenant of a request that names `named`, sent by `caller`.

        Raises:
            Refused: 403, the token is another tenant's.
        """
        if caller is not None and named is not None and named != caller:
            detail = "the token is not of the tenant that the request names; leave `tenant` out"
            raise Refused("invalid_request", detail, status=403, title="Another tenant's")
        return named if caller is None else caller

    def take(self, tenant: str | None, now: int) -> None:
        """One more request of `tenant` at `now` (ms).

        Raises:
            Refused: 429, they come too fast.
        """
        pace = self._paces.get(tenant) if tenant is not None else None
        if pace is None:
            return
        if not pace.has_room(now):
            wait_s = ((pace.next_room(now) or now + 1000) - now) / 1000.0
            detail = f"this tenant may send {pace.rate:g} requests a second"
            raise refused("overloaded", detail, status=429, title="Too fast", retry_after_s=wait_s)
        pace.take(now)


def hash_of(token: str) -> str:
    """A token as the rules hold it."""
    return f"sha256:{sha256(token.encode()).hexdigest()}"

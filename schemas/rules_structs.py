"""The structs of a rules file, and of rules ready to use."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from schemas.bounds import Money
from schemas.parts import Examination, OnSlow, Part, Placement, Privacy, Side

Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0, le=1e6)]
Duration = Annotated[int, Meta(ge=1, le=600_000, description="milliseconds")]
Count = Annotated[int, Meta(ge=1, le=2**31)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]
Phrase = Annotated[str, Meta(min_length=1, max_length=256)]
Names = Annotated[tuple[Name, ...], Meta(max_length=64)]
HeaderName = Annotated[str, Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", max_length=128)]
Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)]
TokenHash = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$", description="sha256 of a bearer token")]
Url = Annotated[str, Meta(pattern=r"^https?://[^\s/]+", max_length=2048)]

MAX_STEPS = 256
"""Most steps of one task: of each it is known which others come before."""
DEFAULT_MERGE = "collect"
"""The strategy of a task of several steps that names none."""


class RulesPart(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a rules file: an unknown key is a typing error, not a newer version."""


class Weights(RulesPart, frozen=True, kw_only=True):
    """Weights of the score's factors; only their ratios count."""

    latency: Weight = 0.4
    cost: Weight = 0.3
    privacy: Weight = 0.3


class MergeRule(RulesPart, frozen=True, kw_only=True):
    """How the steps' outputs become one: a strategy's name and its parameters."""

    strategy: Name
    params: dict[str, Any] = {}


class StepRule(RulesPart, frozen=True, kw_only=True):
    """One step of a task.

    `capability` defaults to the step's name. `inputs` maps a name to a reference (`inputs.NAME`, `query`,
    `params.NAME`, `steps.STEP`, `steps.STEP.NAME`); a reference to what is not there leaves its name out;
    without `inputs` the step gets all inputs of the request as they are. What is None here and said of the
    task is the task's once the file is parsed. `alternatives` are other capabilities that can do the same:
    health, speed, price and rate limits decide between them. `latency_ms` is the p90 that a side must keep
    (200 ms for voice); a side that does not is taken only where none does. `cache` allows or forbids
    keeping the step's answer for equal inputs, whatever the capability's card says.
    """

    name: Name
    capability: str = ""
    side: Placement = "auto"
    after: Names = ()
    inputs: dict[str, str] = {}
    weight: Weight | None = None
    priority: int | None = None
    local_threshold: Share | None = None
    slow_ms: Duration | None = None
    on_slow: OnSlow | None = None
    max_local_tokens: Count | None = None
    max_batch: Count | None = None
    alternatives: Names = ()
    latency_ms: Duration | None = None
    cache: bool | None = None


class TaskRule(RulesPart, frozen=True, kw_only=True):
    """One task. Once the file is parsed it has at least one step.

    `phrases` find the task in a request's `query`. `local_threshold` is the confidence below which a local
    answer is not enough, `max_local_tokens` the longest input that stays local, `fallback_url` an HTTP
    service of the operator that stands in for the cloud capability, `fallback_headers` the headers that it
    wants and the environment variables of the worker that hold their values, `cloud_batch_size` the largest
    batch there. `scale_to_zero` says that no live worker is no reason against a side. `slow_ms` and
    `on_slow`: after how long a silent attempt is helped by the next one, and whether a weak answer is then
    given (`answer`) or held until the deadline (`wait`). `detectors` stand for those of all tasks; `ignore`
    are kinds of findings that are this task's ordinary matter, such as the dates of a financial report.
    `stale_s`: an answer kept for an equal request may be so old and still stand in where the task has no
    other, marked with its age.
    """

    capability: str | None = None
    phrases: tuple[Phrase, ...] = ()
    steps: Annotated[tuple[StepRule, ...], Meta(max_length=MAX_STEPS)] = ()
    merge: MergeRule | None = None
    side: Placement | None = None
    local_threshold: Share | None = None
    fallback_url: Url | None = None
    fallback_headers: dict[HeaderName, Variable] = {}
    max_local_tokens: Count | None = None
    cloud_batch_size: Count | None = None
    weights: Weights | None = None
    deadline_ms: Duration | None = None
    slow_ms: Duration | None = None
    on_slow: OnSlow | None = None
    scale_to_zero: bool = False
    latency_ms: Duration | None = None
    cache: bool | None = None
    stale_s: Annotated[int, Meta(ge=0, le=604_800, description="seconds")] | None = None
    predictor: Name | None = None
    privacy: Privacy = "normal"
    detectors: tuple[Name, ...] | None = None
    ignore: tuple[Name, ...] = ()

    def examination(self, whole: Examination) -> Examination:
        """How this task's payloads are examined, where `whole` is how those of all tasks are."""
        if self.detectors is None and not self.ignore:
            return whole
        detectors = whole.detectors if self.detectors is None else self.detectors
        return Examination(detectors=detectors, mask=whole.mask, ignore=(*whole.ignore, *self.ignore))


class Price(RulesPart, frozen=True, kw_only=True):
    """What a capability costs on one side, in the budget's currency. With `per_1k_tokens` an upper bound must
    be known: `max_tokens` of a call, or `max_cost` itself.
    """

    per_call: Money = 0.0
    per_1k_tokens: Money = 0.0
    max_tokens: Count | None = None
    max_cost: Money | None = None

    @property
    def bound(self) -> float | None:
        """The most that one call may cost, None where nothing bounds it."""
        if self.max_cost is not None:
            return self.max_cost
        if not self.per_1k_tokens:
            return self.per_call
        return (
            None if self.max_tokens is None else self.per_call + self.per_1k_tokens * self.max_tokens / 1000
        )


class BudgetRule(RulesPart, frozen=True, kw_only=True):
    """Ceilings of a day (UTC): of all tenants together, and of each tenant that has none of its own."""

    per_day: Money | None = None
    per_tenant: Money | None = None
    currency: Name = "USD"


class TenantRule(RulesPart, frozen=True, kw_only=True):
    """What holds for one tenant: its ceiling of a day, a least level of privacy, its default deadline; and at
    the gateway the hashes of its bearer tokens (`edgeway token` makes both), how many requests a second it
    may send, and how many may be open at once.
    """

    per_day: Money | None = None
    privacy: Privacy = "normal"
    deadline_ms: Duration | None = None
    tokens: Annotated[tuple[TokenHash, ...], Meta(max_length=16)] = ()
    max_qps: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    max_open: Count | None = None


class PrivacyRule(RulesPart, frozen=True, kw_only=True):
    """The detectors that examine payloads (None: all that are built in; empty: none), the kinds of findings
    that may be masked, and those that count for nothing.
    """

    detectors: Names | None = None
    mask: Names = ()
    ignore: Names = ()


class RulesFile(RulesPart, frozen=True, kw_only=True):
    """The file with its tasks under `tasks`. In the flat form the tasks stand beside the other keys.

    `apps` are the Python modules, or files beside the rules file, whose capabilities a worker serves, and
    `decomposers` those that split requests in code, `merges` those with merge strategies. `hosts` may be
    fetched from where a request names a URL. `prices` are by `SIDE/CAPABILITY`. `cache_s` is how long answers
    are kept, 0: not at all. `stale_s` is how old a kept answer may be that stands in where a task has no
    other; 0: none does.
    """

    tasks: dict[Name, TaskRule] = {}
    reply_topics: tuple[str, ...] = ()
    apps: Names = ()
    decomposers: Names = ()
    merges: Names = ()
    hosts: tuple[Name, ...] = ()
    privacy: PrivacyRule = PrivacyRule()
    budget: BudgetRule | None = None
    prices: dict[Name, Price] = {}
    tenants: dict[Name, TenantRule] = {}
    cache_s: Annotated[int, Meta(ge=0, le=86_400, description="seconds")] = 300
    stale_s: Annotated[int, Meta(ge=0, le=604_800, description="seconds")] = 0
    builtin: bool = True


class Rules(Part, frozen=True, kw_only=True):
    """Rules ready to use. `version` is a digest of what they say, `capabilities` every (side, capability)
    they can use.
    """

    version: str
    tasks: dict[str, TaskRule]
    reply_topics: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    capabilities: tuple[tuple[Side, str], ...] = ()
    decomposers: tuple[str, ...] = ()
    merges: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    privacy: Examination = Examination()
    budget: BudgetRule | None = None
    prices: dict[str, Price] = {}
    tenants: dict[str, TenantRule] = {}
    cache_s: int = 300
    stale_s: int = 0

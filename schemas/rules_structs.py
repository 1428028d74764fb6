"""The structs of a rules file, and of rules ready to use."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from schemas.messages import OnSlow, Part, Placement, Side

Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0, le=1e6)]
Duration = Annotated[int, Meta(ge=1, le=600_000, description="milliseconds")]
Count = Annotated[int, Meta(ge=1, le=2**31)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]
Phrase = Annotated[str, Meta(min_length=1, max_length=256)]
Url = Annotated[str, Meta(pattern=r"^https?://[^\s/]+", max_length=2048)]

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
    task is the task's once the file is parsed.
    """

    name: Name
    capability: str = ""
    side: Placement = "auto"
    after: tuple[str, ...] = ()
    inputs: dict[str, str] = {}
    weight: Weight | None = None
    priority: int | None = None
    local_threshold: Share | None = None
    slow_ms: Duration | None = None
    on_slow: OnSlow | None = None
    max_local_tokens: Count | None = None
    max_batch: Count | None = None


class TaskRule(RulesPart, frozen=True, kw_only=True):
    """One task. Once the file is parsed it has at least one step.

    `phrases` find the task in a request's `query`. `local_threshold` is the confidence below which a local
    answer is not enough, `max_local_tokens` the longest input that stays local, `fallback_url` an HTTP
    service of the operator that stands in for the cloud capability, `cloud_batch_size` the largest batch
    there. `scale_to_zero` says that no live worker is no reason against a side. `slow_ms` and `on_slow`:
    after how long a silent attempt is helped by the next one, and whether a weak answer is then given
    (`answer`) or held until the deadline (`wait`).
    """

    capability: str | None = None
    phrases: tuple[Phrase, ...] = ()
    steps: tuple[StepRule, ...] = ()
    merge: MergeRule | None = None
    side: Placement | None = None
    local_threshold: Share | None = None
    fallback_url: Url | None = None
    max_local_tokens: Count | None = None
    cloud_batch_size: Count | None = None
    weights: Weights | None = None
    deadline_ms: Duration | None = None
    slow_ms: Duration | None = None
    on_slow: OnSlow | None = None
    scale_to_zero: bool = False


class RulesFile(RulesPart, frozen=True, kw_only=True):
    """The file with its tasks under `tasks`. In the flat form the tasks stand beside the other keys.

    `apps` are the Python modules, or files beside the rules file, whose capabilities a worker serves.
    """

    tasks: dict[Name, TaskRule] = {}
    reply_topics: tuple[str, ...] = ()
    apps: tuple[Name, ...] = ()
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

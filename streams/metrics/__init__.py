"""Prometheus metrics of every role. Labels are bounded: topics, codes, states; never ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import REGISTRY, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from streams.metrics.stages import Times, stage

__all__ = ["Times", "count_from", "stage"]

_LONG_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_LATENCY_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

DEAD_LETTERS = Counter("edgeway_dead_letters_total", "Records dead-lettered", ["topic", "code"])
UNDELIVERABLE = Counter("edgeway_undeliverable_total", "Records that Kafka will never accept", ["code"])
PRODUCERS_REPLACED = Counter(
    "edgeway_producers_replaced_total", "Producers replaced after a fatal state or a silence"
)
RECORDS = Counter("edgeway_records_total", "Records taken from a topic", ["topic"])
COMMITS = Counter("edgeway_commits_total", "Offset commits", ["outcome"])
REBALANCES = Counter("edgeway_rebalances_total", "Assignments received", ["group"])
LOST_WORK = Counter(
    "edgeway_lost_work_total", "Records deleted by retention before they were done", ["topic"]
)
OPEN_RECORDS = Gauge("edgeway_open_records", "Records taken and not finished", ["group"])
OLDEST_RECORD_S = Gauge(
    "edgeway_oldest_record_seconds", "Age of the oldest record taken and not finished", ["group", "topic"]
)
LAG = Gauge("edgeway_lag_records", "Records of a topic that its group has not finished", ["group", "topic"])
OPEN_BYTES = Gauge("edgeway_open_bytes", "Bytes of records taken and not finished", ["group"])
REQUESTS = Counter("edgeway_requests_total", "Requests planned or refused", ["outcome"])
ROUTES = Counter("edgeway_routes_total", "Steps placed", ["side", "rule"])
CLOSED = Counter(
    "edgeway_closed_sides_total",
    "Sides closed to steps, by the constraint that closed them",
    ["side", "rule"],
)
RESULTS = Counter("edgeway_results_total", "Answers, by the code of their error", ["status", "code"])
OLDEST_JOIN_S = Gauge("edgeway_oldest_join_seconds", "Age of the oldest request that waits for its parts")
OPEN_JOINS = Gauge("edgeway_open_joins", "Requests waiting for their parts")
CACHE = Counter("edgeway_cache_total", "Look-ups in the cache of answers", ["kind", "outcome"])
ERRANDS_DROPPED = Counter(
    "edgeway_errands_dropped_total", "Answers not cached, reservations not released", ["errand", "reason"]
)
DEGRADED = Counter("edgeway_degraded_total", "Answers less than the best, by each of their reasons", ["kind"])
CANCELLED = Counter("edgeway_cancelled_total", "Cancelled work that was not begun", ["stage"])
OBJECTS = Counter("edgeway_objects_total", "Objects read and written", ["operation", "outcome"])
OBJECT_S = Histogram(
    "edgeway_object_seconds", "Time to read or write an object", ["operation"], buckets=_LATENCY_S
)
SUBTASKS = Counter("edgeway_subtasks_total", "Subtasks answered by a worker", ["capability", "side"])
BACKEND_FAULTS = Counter(
    "edgeway_backend_faults_total", "Rows that a backend failed on", ["capability", "side"]
)
INFERENCE_S = Histogram(
    "edgeway_inference_seconds", "Time in the model, per batch", ["capability"], buckets=_LATENCY_S
)
BATCH_ROWS = Histogram(
    "edgeway_batch_rows", "Rows per model call", ["capability"], buckets=(1, 2, 4, 8, 16, 32, 64, 128)
)
MODEL_LOAD_S = Histogram(
    "edgeway_model_load_seconds",
    "From the start of a load to the end of its warm-up",
    ["capability", "side"],
    buckets=_LONG_S,
)
COLD_START_S = Histogram(
    "edgeway_cold_start_seconds",
    "First run after a load: from the append of its oldest subtask to its end",
    ["capability", "side"],
    buckets=_LONG_S,
)
REMOTE_CALLS = Counter(
    "edgeway_remote_calls_total",
    "Calls of services elsewhere, retries within them",
    ["capability", "outcome"],
)
REMOTE_S = Histogram(
    "edgeway_remote_seconds",
    "One call of a service elsewhere, with its retries",
    ["capability"],
    buckets=_LATENCY_S,
)
REMOTE_RETRIES = Counter("edgeway_remote_retries_total", "Calls made again", ["capability"])
TOKENS = Counter("edgeway_tokens_total", "Tokens that answers used", ["capability", "side"])
COST = Counter(
    "edgeway_cost_total", "What answers cost, in the currency of the prices", ["capability", "side"]
)
SPANS = Counter("edgeway_spans_total", "Spans of traced requests, by what became of them", ["outcome"])
BUILD_INFO = Gauge("edgeway_build_info", "1 for the build that runs", ["version", "python"])
GPU = Gauge("edgeway_gpu_utilisation_ratio", "Share of time that a GPU was at work", ["device"])
HTTP_CALLS = Counter(
    "edgeway_http_calls_total", "Calls of capabilities over HTTP", ["capability", "side", "status"]
)
HTTP_S = Histogram(
    "edgeway_http_seconds",
    "From a call's head to its answer, over HTTP",
    ["capability", "side"],
    buckets=_LATENCY_S,
)
HTTP_OPEN = Gauge("edgeway_http_open", "Calls of capabilities over HTTP under way")
GATEWAY_CALLS = Counter("edgeway_gateway_requests_total", "Calls of the gateway", ["route", "status"])
GATEWAY_S = Histogram(
    "edgeway_gateway_seconds",
    "From a call's head to its answer at the gateway; of a stream to its beginning",
    ["route"],
    buckets=_LATENCY_S,
)
GATEWAY_OPEN = Gauge(
    "edgeway_gateway_open", "Calls under way at the gateway, and requests left open for later"
)
GATEWAY_BYTES = Gauge("edgeway_gateway_bytes", "Bytes of bodies that the gateway holds")
GATEWAY_SHED = Counter(
    "edgeway_gateway_shed_total",
    "Calls refused for want of room (open, bytes), by a tenant's limits (tenant, rate), or as Kafka was away",
    ["reason"],
)
BREAKER = Gauge(
    "edgeway_breaker_open", "A capability's breaker: 0 closed, 1 half open, 2 open", ["capability", "side"]
)

BUDGET_SPENT = Gauge("edgeway_budget_spent", "Spent today, as this process saw it last", ["tenant"])
BUDGET_RESERVED = Gauge(
    "edgeway_budget_reserved", "Set aside today for work under way, as this process saw it last", ["tenant"]
)
BUDGET_LIMIT = Gauge("edgeway_budget_limit", "The ceiling of a day; +Inf: none", ["tenant"])
BUDGET_REFUSALS = Counter("edgeway_budget_refusals_total", "Payments that were not allowed", ["reason"])
BUDGET_OVERRUN = Counter("edgeway_budget_overrun_total", "Money that payments cost beyond their bound")
BUDGET_STORE_UP = Gauge("edgeway_budget_store_up", "1 where the budget's ledger answers")

MODEL_SWITCHES = Counter(
    "edgeway_model_switch_total", "Activated versions of models: taken up, or refused", ["outcome"]
)

RULES_RELOADS = Counter("edgeway_rules_reloads_total", "Changed contents of the rules file", ["outcome"])
RULES_REFUSED = Gauge("edgeway_rules_refused", "1 while the rules file is not what is in force")
RULES_INFO = Gauge("edgeway_rules_info", "1 for the version of the rules in force", ["version"])


PRIVACY_VERDICTS = Counter("edgeway_privacy_verdicts_total", "Payloads examined", ["level"])
PRIVACY_FINDINGS = Counter("edgeway_privacy_findings_total", "Kinds found in examined payloads", ["kind"])
PRIVACY_S = Histogram(
    "edgeway_privacy_seconds",
    "Processor time of one examination",
    buckets=(0.0001, 0.0003, 0.001, 0.003, 0.005, 0.01, 0.03, 0.1, 0.3, 1.0),
)


class _Counts(Collector):
    def __init__(self, name: str, text: str, source: Callable[[], Mapping[str, float]]) -> None:
        self._name, self._text, self._source = name, text, source

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(self._name, self._text, labels=["kind"])
        for kind, value in self._source().items():
            family.add_metric([kind], value)
        yield family


def count_from(name: str, text: str, source: Callable[[], Mapping[str, float]]) -> None:
    """Show counts that pure code keeps by itself, by kind, read at each scrape."""
    REGISTRY.register(_Counts(name, text, source))

"""Every setting there is: the one table from which flags, variables, documentation and checks come."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from streams.settings import kinds
from streams.settings.about import About, setting
from streams.settings.groups import GROUPS, commands_of
from streams.settings.kafka import DEFAULT_KAFKA, KafkaSettings
from streams.settings.kinds import Secret

__all__ = [
    "DEFAULTS",
    "DEFAULT_KAFKA",
    "GROUPS",
    "TABLE",
    "About",
    "Settings",
    "commands_of",
    "flag_of",
    "variable_of",
]

MiB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(KafkaSettings):
    """All settings, checked. Paths are as given; durations end in `_ms` or `_s`; None means not set."""

    rules: Path | None = setting(
        None, kinds.FILE, "rules", "the rules file; without it the built-in templates alone"
    )
    partitions: int = setting(6, kinds.integer(1, 10_000), "topics", "partitions of each topic that is made")
    replication: int = setting(1, kinds.integer(1, 100), "topics", "replicas of each topic that is made")

    redis: str | None = setting(
        None, kinds.REDIS, "stores", "Redis for shared stores; memory keeps them in this process"
    )
    objects: str | None = setting(
        None,
        kinds.OBJECTS,
        "objects",
        "object store for large payloads, such as s3://bucket/edge or a folder",
    )
    cloud_objects: str | None = setting(
        None, kinds.OBJECTS, "objects", "object store of the cloud's side; without it no object goes there"
    )
    ledger: str = setting(
        "auto",
        kinds.choice("auto", "require"),
        "stores",
        "where a starting role finds no ledger of the budget: auto opens one, require leaves that to you",
    )
    port: int | None = setting(
        None,
        kinds.integer(1, 65535),
        "role",
        "HTTP port for /healthz, /readyz, /metrics and a worker's capabilities; without it no HTTP",
    )
    host: str = setting("127.0.0.1", kinds.TEXT, "role", "HTTP address to listen on; 0.0.0.0 for all")
    metrics: bool = setting(True, kinds.BOOLEAN, "role", "whether /metrics is served")
    slot: str | None = setting(
        None,
        kinds.TEXT,
        "role",
        "static member id (one per process, kept over restarts): a restart then takes about 2 s",
    )
    auto_slot: bool = setting(
        True,
        kinds.BOOLEAN,
        "role",
        "without --slot hold the lowest free one of this machine: a killed process is succeeded at once",
    )
    leave_on_stop: str = setting(
        "auto",
        kinds.choice("auto", "yes", "no"),
        "role",
        "whether a stop gives the partitions up at once; auto: yes without a slot, no with one",
    )

    rules_poll_s: float = setting(
        1.0,
        kinds.seconds(0, 3600),
        "role",
        "between looks at the rules file; a change is adopted without a restart; 0: never",
    )

    otlp: str | None = setting(
        None, kinds.URL, "trace", "OTLP/HTTP endpoint that spans are sent to; needs the extra `otel`"
    )
    otlp_headers_file: Path | None = setting(
        None, kinds.FILE, "trace", "file of headers for that endpoint, one `NAME: VALUE` a line"
    )
    trace_sample: float = setting(
        0.0,
        kinds.ratio(),
        "trace",
        "share of requests that are traced where the caller's traceparent does not say it",
    )

    side: str | None = setting(
        None, kinds.choice("local", "cloud"), "worker", "serve every capability of this side"
    )
    capabilities: tuple[str, ...] = setting(
        (), kinds.CAPABILITIES, "worker", "serve these, for example local/nlp/intent,cloud/nlp/intent"
    )
    app: str | None = setting(
        None, kinds.TEXT, "worker", "Python module or file whose @capability functions are served"
    )
    model_threads: int = setting(
        1, kinds.integer(1, 256), "worker", "threads that run models; each model runs single-threaded inside"
    )

    models: str | None = setting(
        None,
        kinds.TEXT,
        "models",
        "model repository, a folder or URL (s3://bucket/prefix): a worker serves its active models",
    )
    models_cache: Path | None = setting(
        None,
        kinds.PATH,
        "models",
        "folder that models are pulled into; without it edgeway/models in the user's cache folder",
    )
    models_poll_s: float = setting(
        5.0,
        kinds.seconds(0, 3600),
        "models",
        "between looks at which versions are active; another one is taken up while serving; 0: never",
    )

    http_token: Secret | None = setting(
        None,
        kinds.SECRET,
        "http",
        "bearer token that calls of capabilities must bring; without it whoever reaches the port may call",
        flag=False,
    )
    http_token_file: Path | None = setting(
        None, kinds.FILE, "http", "file whose first line is the bearer token for calls of capabilities"
    )
    http_requests: int = setting(
        2000, kinds.integer(1, 100_000), "http", "calls over HTTP under way at once; more are answered 429"
    )

    gateway_open: int = setting(
        5000,
        kinds.integer(1, 1_000_000),
        "gateway",
        "requests open at a gateway at once, waiting callers and those who ask later; more are answered 503",
    )
    gateway_bytes: int = setting(
        256 * MiB,
        kinds.size(MiB, 2**40),
        "gateway",
        "bytes of request bodies that a gateway holds at once; more are answered 503",
    )
    upload_bytes: int = setting(
        32 * MiB,
        kinds.size(1024, 2**32),
        "gateway",
        "largest multipart/form-data body; what does not fit a record goes to the object store",
    )
    cors_origins: tuple[str, ...] = setting(
        (),
        kinds.ORIGINS,
        "gateway",
        "origins whose pages may call, for example https://app.example.com; without any no page may",
    )

    hang_s: float = setting(
        30.0,
        kinds.seconds(0, 86_400),
        "worker",
        "a model that runs so long without an answer hangs (one that asks elsewhere: beyond its deadline), "
        "and the process starts again or exits; 0: after watchdog_s",
    )
    on_stuck: str = setting(
        "restart",
        kinds.choice("restart", "exit"),
        "worker",
        "what a worker does that hangs: start itself again, or exit for a supervisor to do so; `up` exits",
    )

    data: Path | None = setting(
        None, kinds.PATH, "data", "folder for the embedded Kafka's data; without it a temporary one"
    )

    session_timeout_ms: int = setting(
        6000, kinds.milliseconds(1000, 300_000), "delivery", "Kafka counts a silent member out after this"
    )
    heartbeat_ms: int = setting(
        500, kinds.milliseconds(50, 60_000), "delivery", "between heartbeats to the group"
    )
    window_records: int = setting(
        2000, kinds.integer(1, 1_000_000), "delivery", "unfinished records of a partition before it is paused"
    )
    window_bytes: int = setting(
        64 * MiB,
        kinds.size(MiB, 2**40),
        "delivery",
        "bytes of unfinished records of a partition before it is paused",
    )
    batch_records: int = setting(
        500, kinds.integer(1, 100_000), "delivery", "records handed to an agent at once, at most"
    )
    commit_ms: int = setting(
        200, kinds.milliseconds(10, 60_000), "delivery", "between commits of moved watermarks"
    )
    drain_s: float = setting(
        3.0, kinds.seconds(0, 600), "delivery", "work in flight is awaited so long at a rebalance"
    )
    stop_s: float = setting(
        10.0, kinds.seconds(0, 3600), "delivery", "work in flight is awaited so long at a stop"
    )
    send_timeout_s: float = setting(
        20.0, kinds.seconds(0.1, 600), "delivery", "an unacknowledged send counts as unknown after this"
    )
    watchdog_s: float = setting(
        60.0,
        kinds.seconds(1, 86_400),
        "delivery",
        "records wait and nothing finished for so long: the process exits",
    )

    open_joins: int = setting(
        100_000,
        kinds.integer(1, 100_000_000),
        "joins",
        "open requests of an aggregator before new ones are refused",
    )
    open_bytes: int = setting(
        512 * MiB,
        kinds.size(MiB, 2**40),
        "joins",
        "bytes of open requests of an aggregator before new ones are refused",
    )

    log_level: str = setting(
        "info", kinds.choice("debug", "info", "warning", "error"), "log", "what is logged"
    )
    log_format: str = setting(
        "auto", kinds.choice("auto", "text", "json"), "log", "auto: text on a terminal, JSON lines otherwise"
    )

    @property
    def bootstrap(self) -> str:
        """The bootstrap addresses, the default where none is set."""
        return self.kafka or DEFAULT_KAFKA


TABLE: dict[str, About] = {f.name: f.metadata["about"] for f in dataclasses.fields(Settings)}
"""What there is to say of each setting, by name, in the order of the documentation."""

DEFAULTS: dict[str, object] = {f.name: f.default for f in dataclasses.fields(Settings)}


def flag_of(name: str) -> str:
    """The flag of a setting."""
    return "--" + name.replace("_", "-")


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return "EDGEWAY_" + name.upper()

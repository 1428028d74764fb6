"""docs/metrics.md, the alerts and the dashboard: all speak of the metrics that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from edgeway.roles.aggregator import JOIN_EVENTS
from streams import metrics
from streams.metrics.stages import BOUNDS_S, Stage

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "edgeway.json"
ROW = re.compile(r"\| `(edgeway_\w+)` \| (\w+) \| ([\w, -]+) \| (.+) \| (.+) \|")


class About(NamedTuple):
    kind: str
    labels: frozenset[str]


def declared() -> dict[str, About]:
    """All metrics of all roles, by the name that a scrape shows."""
    found = {
        "edgeway_stage_seconds": About("histogram", frozenset({"stage"})),
        f"{JOIN_EVENTS}_total": About("counter", frozenset({"kind"})),
    }
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            (family,) = metric.describe()
            name = family.name + ("_total" if family.type == "counter" else "")
            found[name] = About(family.type, frozenset(metric._labelnames))
    return found


def described() -> dict[str, About]:
    rows = (ROW.fullmatch(line) for line in PAGE.splitlines())
    return {
        row[1]: About(row[2], frozenset() if row[3] == "-" else frozenset(row[3].split(", ")))
        for row in rows
        if row is not None
    }


def test_the_page_lists_every_metric_as_it_is() -> None:
    assert described() == declared()
    assert len(declared()) > 50


def test_labels_are_bounded() -> None:
    for name, about in declared().items():
        assert not about.labels & {"id", "request", "subtask", "user", "digest", "trace"}, name
        assert "tenant" not in about.labels or name.startswith("edgeway_budget_"), name


def test_the_page_tells_the_stages() -> None:
    told = re.findall(r"^\| `(\w+)` \| (?:router|worker|aggregator) \|", PAGE, re.MULTILINE)
    assert tuple(told) == get_args(Stage)
    assert (BOUNDS_S[0], BOUNDS_S[-1]) == (0.001, 30.0)


def of_alerts() -> Iterator[tuple[str, str]]:
    for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["summary"]
            assert rule["labels"]["severity"] in ("page", "ticket", "info")
            yield rule["alert"], rule["expr"]


def of_dashboard() -> Iterator[tuple[str, str]]:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
            for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                assert label in target["expr"], (panel["title"], label)


def of_page() -> Iterator[tuple[str, str]]:
    for block in re.findall(r"```promql\n(.*?)```", PAGE, re.DOTALL):
        for line in block.splitlines():
            yield "page", line


EXPRESSIONS = [*of_alerts(), *of_dashboard(), *of_page()]


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_expressions_name_what_there_is(where: str, expression: str) -> None:
    known = declared()
    bare = re.sub(r'"[^"]*"', '""', expression)
    for opened, closed in ("()", "{}", "[]"):
        assert bare.count(opened) == bare.count(closed), where
    labels = {"le"}
    named = re.findall(r"(edgeway_\w+)({[^}]*})?", bare)
    assert named, where
    for name, selector in named:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        about = known.get(name) or known[base]
        assert (base == name) == (about.kind != "histogram"), f"{where}: {name}"
        asked = set(re.findall(r"(\w+)\s*[=!]=?~?", selector))
        assert asked <= about.labels | {"le"}, f"{where}: {name}{selector}"
        labels |= about.labels
        if about.kind == "counter":
            assert re.search(rf"(rate|increase)\({name}", bare), f"{where}: {name} is a counter"
    for group in re.findall(r"by \(([^)]*)\)", bare):
        assert {label.strip() for label in group.split(",")} <= labels, where


def test_names_of_alerts_are_unique() -> None:
    names = [name for name, _ in of_alerts()]
    assert len(set(names)) == len(names) > 10

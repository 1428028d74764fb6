"""One request for each ready-made capability, on real or realistic input."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
REPORT = (
    "Northwind Valley Instruments Inc. reported revenue of $1.26 billion for Q3 2025, up 20% from $1.05"
    " billion. Cost of sales was $756 million, compared with $672 million. Net profit reached $189 million"
    " versus $126 million a year earlier. Jane Doe, its chief executive, spoke of a good quarter in Berlin."
    " On 30 September 2025 total assets were $4.82 billion and total liabilities $1.928 billion."
)
CHINESE = (
    "星河智造股份有限公司发布2025年第三季度财报：营业收入12.6亿元，上年同期10.5亿元，同比增长20%。营业成本7.56亿元，"
    "上年同期6.72亿元；净利润1.89亿元，上年同期1.26亿元。总资产48.2亿元，总负债19.28亿元。"
)
DIRTY = "<p>" + REPORT.replace(" ", "\u3000", 5) + "<script>x()</script></p>"
SOON, USUAL = 100.0, 150.0
BOUND_MS = {
    "text/clean": SOON,
    "text/tokenize": SOON,
    "finance/tokenize": SOON,
    "nlp/entities": SOON,
    "nlp/intent": SOON,
    "nlp/summarize": USUAL,
    "nlp/embed": USUAL,
    "nlp/answer": USUAL,
    "file/type": USUAL,
    "geo/gps_check": SOON,
    "traffic/forecast": USUAL,
    "traffic/congestion": SOON,
    "finance/indicators": USUAL,
    "finance/chart": USUAL,
    "finance/chart svg": USUAL,
    "finance/chart png": USUAL,
    "multimodal/align": USUAL,
    "multimodal/fuse": USUAL,
}
"""What the 90th percentile is to stay below, in ms: less where somebody waits for it; image models have none.
"""


@dataclass(frozen=True, slots=True)
class Sample:
    label: str
    capability: str
    inputs: dict[str, Any]
    params: dict[str, Any] = field(default_factory=dict)


def samples(folder: Path) -> list[Sample]:
    """Those that the library offers here; `folder` gets the documents that `nlp/answer` reads."""
    documents = folder / "documents"
    documents.mkdir()
    (documents / "hours.md").write_text(
        "# Hours\nThe branch opens at nine and closes at five.\n", encoding="utf-8"
    )
    os.environ.setdefault("EDGEWAY_KB", str(documents))
    from workers import library

    offered = {backend.card.capability for backend in library.offers() if backend.card.side == "local"}
    return [sample for sample in (*_texts(), *_tables(), *_images()) if sample.capability in offered]


def _texts() -> Iterator[Sample]:
    yield Sample("text/clean", "text/clean", {"text": DIRTY}, {"html": "strip"})
    yield Sample("text/tokenize", "text/tokenize", {"text": REPORT + CHINESE})
    yield Sample("finance/tokenize", "finance/tokenize", {"text": REPORT + CHINESE})
    yield Sample("nlp/entities", "nlp/entities", {"text": REPORT + CHINESE})
    yield Sample("nlp/summarize", "nlp/summarize", {"text": (REPORT + "\n") * 5})
    yield Sample("nlp/intent", "nlp/intent", {"text": "My card still has not arrived, what shall I do?"})
    yield Sample("nlp/embed", "nlp/embed", {"text": REPORT})
    yield Sample("nlp/answer", "nlp/answer", {"text": "When does the branch open?"})


def _tables() -> Iterator[Sample]:
    yield Sample("geo/gps_check", "geo/gps_check", {"points": _track(), "track": False})
    history = {f"s{n}": [50.0 + n % 7 - k % 3 for k in range(24)] for n in range(20)}
    roads = {"history": history, "step_min": 5, "free_flow_kmh": 60}
    nexts = {f"s{n}": [f"s{n + 1}"] for n in range(19)}
    yield Sample("traffic/forecast", "traffic/forecast", {**roads, "adjacency": nexts})
    yield Sample("traffic/congestion", "traffic/congestion", roads)
    yield Sample("finance/indicators", "finance/indicators", {"text": REPORT + CHINESE})
    yield Sample("finance/chart", "finance/chart", {"text": REPORT})
    for form in ("svg", "png"):
        yield Sample(f"finance/chart {form}", "finance/chart", {"text": REPORT}, {"format": form})


def _track() -> list[dict[str, Any]]:
    with (DATA / "track_saone.csv").open(encoding="utf-8") as file:
        rows = csv.DictReader(file)
        return [{"t": row["t"], "lat": float(row["lat"]), "lon": float(row["lon"])} for row in rows]


def _images() -> Iterator[Sample]:
    pictures = sorted((DATA / "vision").glob("*.jpg"), key=lambda path: path.stat().st_size)
    parts = [
        {"text": "A cat on a sofa"},
        {"image_url": "https://example.com/cat.png", "caption": "A cat on a sofa"},
    ]
    for name in ("multimodal/align", "multimodal/fuse"):
        yield Sample(name, name, {"parts": parts})
    if not pictures:
        return
    image = {"image": next(path for path in pictures if path.stat().st_size > 20_000).read_bytes()}
    for name in (
        "image/preprocess",
        "image/ocr",
        "vision/classify",
        "vision/detect",
        "vision/caption",
        "image_captioning",
    ):
        more = {"width": 224, "height": 224} if name == "image/preprocess" else {}
        yield Sample(name, name, image, more)
    yield Sample("file/type", "file/type", {"file": image["image"]})

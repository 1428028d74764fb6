"""All capability functions of the demo under one name each: f(inputs, params) -> (output, confidence).

`CAPABILITIES` maps "side/capability" to the function, `BATCHES` to its form for many rows
(list of inputs -> list of (output, confidence) or, for a bad row, its ValueError).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .classifiers import (
    Answer,
    Row,
    image_class,
    image_class_batch,
    intent_cloud,
    intent_cloud_batch,
    intent_local,
    intent_local_batch,
)
from .finance import chart, entities, indicators, tokenize
from .traffic import congestion, forecast, gps_check

__all__ = [
    "BATCHES",
    "CAPABILITIES",
    "chart",
    "congestion",
    "entities",
    "forecast",
    "gps_check",
    "image_class",
    "image_class_batch",
    "indicators",
    "intent_cloud",
    "intent_cloud_batch",
    "intent_local",
    "intent_local_batch",
    "tokenize",
]

Function = Callable[[Mapping[str, Any], Mapping[str, Any]], Answer]
Batch = Callable[[Sequence[Mapping[str, Any]]], list[Row]]

CAPABILITIES: dict[str, Function] = {
    "local/nlp/intent": intent_local,
    "cloud/nlp/intent": intent_cloud,
    "local/vision/image_class": image_class,
    "local/finance/tokenize": tokenize,
    "local/nlp/entities": entities,
    "cloud/finance/tokenize": tokenize,
    "cloud/nlp/entities": entities,
    "cloud/finance/indicators": indicators,
    "cloud/finance/chart": chart,
    "local/geo/gps_check": gps_check,
    "cloud/traffic/forecast": forecast,
    "cloud/traffic/congestion": congestion,
}
BATCHES: dict[str, Batch] = {
    "local/nlp/intent": intent_local_batch,
    "cloud/nlp/intent": intent_cloud_batch,
    "local/vision/image_class": image_class_batch,
}

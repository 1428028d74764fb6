"""The demo's own capability functions under one name each: f(inputs, params) -> (output, confidence).

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

__all__ = [
    "BATCHES",
    "CAPABILITIES",
    "image_class",
    "image_class_batch",
    "intent_cloud",
    "intent_cloud_batch",
    "intent_local",
    "intent_local_batch",
]

Function = Callable[[Mapping[str, Any], Mapping[str, Any]], Answer]
Batch = Callable[[Sequence[Mapping[str, Any]]], list[Row]]

CAPABILITIES: dict[str, Function] = {
    "local/nlp/intent": intent_local,
    "cloud/nlp/intent": intent_cloud,
    "local/vision/image_class": image_class,
}
BATCHES: dict[str, Batch] = {
    "local/nlp/intent": intent_local_batch,
    "cloud/nlp/intent": intent_cloud_batch,
    "local/vision/image_class": image_class_batch,
}

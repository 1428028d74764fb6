"""How long one question takes on one core, features included."""

import time
from collections.abc import Sequence

import numpy as np
import onnxruntime as ort

from .features import FeatureSpec, features


def single_time_ms(
    session: ort.InferenceSession, specs: Sequence[FeatureSpec], texts: Sequence[str]
) -> dict[str, float]:
    """CPU milliseconds for one question, batch 1, one thread: what other processes take does not count."""
    took = []
    for text in texts:
        begin = time.process_time()
        session.run(None, {"features": features([text], specs)})
        took.append((time.process_time() - begin) * 1000)
    return {"p50": round(float(np.percentile(took, 50)), 3), "p99": round(float(np.percentile(took, 99)), 3)}

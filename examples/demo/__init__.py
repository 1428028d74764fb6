"""Models, data and capability functions of the demo; only `app` and `train` import the project's packages."""

import os

# ONNX Runtime tells its maker of models and machine unless this is set before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

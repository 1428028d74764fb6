"""Those that do the work: a subtask comes in, a backend infers, a partial goes out."""

import os

# From 1.29 on, importing ONNX Runtime on Linux starts telemetry that tells its maker of models and machine.
# Nothing leaves this host unasked, so it is off before any module here can import it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

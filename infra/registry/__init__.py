"""The model registry and the ledger behind their ports: MLflow, and a hash-chained file.

MLflow reads its settings when it is imported: importing anything of this package sets those that
keep it quiet and quick to give up. What the environment already says stays.
"""

from __future__ import annotations

import os

MLFLOW_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # A registry that is down is reported in seconds, not after MLflow's own four minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0.2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}

for _name, _value in MLFLOW_SETTINGS.items():
    os.environ.setdefault(_name, _value)

"""Classes that only some versions of PySpark have."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Final

from pyspark.sql import datasource as api

_STREAMING: Final = "pyspark.sql.streaming.datasource"


class _Nothing:
    """A stand-in for classes that this PySpark does not have."""


streaming: Any = importlib.import_module(_STREAMING) if importlib.util.find_spec(_STREAMING) else None
"""The module of limits of streams; None before PySpark 4.2."""

SupportsTriggerAvailableNow: Any = getattr(streaming, "SupportsTriggerAvailableNow", _Nothing)
DataSourceStreamArrowWriter: Any = getattr(api, "DataSourceStreamArrowWriter", api.DataSourceStreamWriter)

HAS_ARROW_STREAMS: Final = hasattr(api, "DataSourceStreamArrowWriter")
"""Whether streams deliver batches as Arrow; PySpark 4.0 delivers rows."""

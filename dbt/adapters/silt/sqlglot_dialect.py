"""The SQL dialect `silt` of sqlglot, which tools look up by the adapter's type to read the lineage of columns.

sqlglot loads this module through the entry point in pyproject.toml. The package itself never imports it, and needs no
sqlglot.
"""

from __future__ import annotations

from sqlglot.dialects.spark import Spark


class Silt(Spark):
    """Spark's SQL, because tools read compiled models."""

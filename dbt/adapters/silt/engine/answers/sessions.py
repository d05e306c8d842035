"""Decides whether a session's settings and statements leave the answers without Spark unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Statement

_ZONE: Final = "spark.sql.session.timeZone"
UNKNOWN_ZONE: Final = "(not known)"
"""Not a zone: a literal that needs a zone is then left to Spark."""

_MAY_CHANGE: Final = ("spark.sql.", "silt.")
_CHANGE_NO_ANSWER: Final = (
    *(
        "spark.sql.codegen.",
        "spark.sql.shuffle.",
        "spark.sql.adaptive.",
        "spark.sql.files.",
        "spark.sql.execution.arrow.",
    ),
    *("spark.sql.sources.parallelPartitionDiscovery.", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.ui."),
    *("spark.sql.parquet.compression.codec", "spark.sql.ansi.enabled", "spark.sql.warehouse.dir", _ZONE),
)
"""Settings of Spark's SQL, or their prefixes, that do not affect answers given without Spark."""

_CHANGE_SESSION: Final = (
    *(ast.SetSetting, ast.ResetSetting, ast.Use, ast.CreateViewUsing, ast.CreateFunction),
    *(ast.Unrecognised, ast.Call, ast.Begin),
)


def change_no_answer(spark_conf: Mapping[str, Any]) -> bool:
    """Returns whether a profile's settings of Spark certainly do not affect answers given without Spark."""
    return all(name.startswith(_CHANGE_NO_ANSWER) for name in spark_conf if name.startswith(_MAY_CHANGE))


def known_zone(spark_conf: Mapping[str, Any]) -> str:
    """Returns the session's time zone, or `UNKNOWN_ZONE` if the profile does not name it, or not literally."""
    zone = str(spark_conf.get(_ZONE, UNKNOWN_ZONE))
    return UNKNOWN_ZONE if "{" in zone else zone


def changes_session(statement: Statement | None) -> bool:
    """Returns whether later statements may have another meaning; true for an unrecognised statement."""
    if statement is None or isinstance(statement, _CHANGE_SESSION):
        return True
    return isinstance(statement, ast.CreateView) and statement.scope is not ast.ViewScope.PERSISTENT

"""dbt-silt: the transactional dbt adapter for Apache Spark.

`Plugin` is given lazily, so that `dbt.adapters.silt.engine` imports without dbt.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "Plugin":
        from dbt.adapters.silt.dbt_seams import interruption

        interruption.hide_traceback()  # before the imports below, which take long enough for a Ctrl-C
        from dbt.adapters.silt.impl import Plugin

        return Plugin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

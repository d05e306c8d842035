"""Skips Spark's search for Python data sources if it provably finds nothing.

When Spark first reads or writes a file it starts a Python process, which imports pyspark and looks for packages named
`pyspark_...` with a data source in them. The first statement waits for that, and few need it (decision 0053).
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import sys
from collections.abc import Mapping
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkContext

_PREFIX: Final = "pyspark_"  # source: pyspark/sql/worker/lookup_data_sources.py
_OTHER_PYTHON: Final = ("spark.pyspark.python", "spark.submit.pyFiles", "spark.archives", "spark.yarn.dist.archives")


def forget_none(context: SparkContext, conf: Mapping[str, str]) -> None:
    """Skips Spark's search if this process can prove that it would find nothing.

    Args:
        context: a context whose Python processes run on this machine, and which has not read or written files yet.
        conf: all settings that it was started with.
    """
    if not _finds_what_spark_would(conf) or any(each.name.startswith(_PREFIX) for each in pkgutil.iter_modules()):
        return
    assert context._jvm is not None
    jvm = context._jvm
    with contextlib.suppress(Py4JError, TypeError):  # a Spark of another version searches itself
        manager = getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceManager$")
        empty = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
        getattr(getattr(manager, "MODULE$"), "dataSourceBuilders_$eq")(jvm.scala.Some(empty))


def _finds_what_spark_would(conf: Mapping[str, str]) -> bool:
    """Returns whether Spark's Python is this Python, with the same packages."""
    if os.environ.get("PYSPARK_PYTHON") != sys.executable or any(key in conf for key in _OTHER_PYTHON):
        return False
    return not any(key.startswith("spark.executorEnv.PYTHON") for key in conf)

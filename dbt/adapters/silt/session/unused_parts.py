"""Removes parts of a local Spark that cost time in every command and that it does not use.

Spark copies Hadoop's configuration several times for each statement, and sends it along with each stage. Two thirds of
its entries are defaults of MapReduce and YARN, which such a Spark never uses (decision 0043).

When Spark first reads or writes a file it starts a Python process, which imports pyspark and looks for packages named
`pyspark_...` with a data source in them. The first statement waits for that, and few need it (decision 0053).
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import sys
from collections.abc import Mapping
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkContext

_FILES: Final = ("mapred-default.xml", "yarn-default.xml")
_PREFIX: Final = "pyspark_"  # source: pyspark/sql/worker/lookup_data_sources.py
_OTHER_PYTHON: Final = ("spark.pyspark.python", "spark.submit.pyFiles", "spark.archives", "spark.yarn.dist.archives")


def remove_hadoop_defaults(context: SparkContext) -> None:
    """Removes each entry that equals the default in these files of Hadoop; entries that the user has changed remain.

    Args:
        context: its master is `local`, with any number of cores, and its sessions have not read files yet.
    """
    jvm = context._jvm
    assert jvm is not None
    configuration = context._jsc.hadoopConfiguration()
    # When it loads these classes, Hadoop reads all defaults again, into every existing configuration.
    jvm.org.apache.hadoop.mapred.JobConf(configuration)
    jvm.org.apache.hadoop.hdfs.HdfsConfiguration(configuration)
    defaults = jvm.org.apache.hadoop.conf.Configuration(False)
    for name in _FILES:
        defaults.addResource(name)
    _entries(context, configuration).removeAll(_entries(context, defaults))


def _entries(context: SparkContext, configuration: Any) -> Any:
    """Returns the live entries, with their variables: the configuration's own methods return copies."""
    gateway = context._gateway
    assert gateway is not None
    language = gateway.jvm.java.lang
    method = configuration.getClass().getDeclaredMethod("getProps", gateway.new_array(language.Class, 0))
    method.setAccessible(True)
    return method.invoke(configuration, gateway.new_array(language.Object, 0)).entrySet()


def skip_search_for_sources(context: SparkContext, conf: Mapping[str, str]) -> None:
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

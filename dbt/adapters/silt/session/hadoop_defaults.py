"""Removes the defaults of MapReduce and YARN from the Hadoop configuration of a Spark that runs on this machine alone.

Spark copies that configuration several times for each statement, and sends it along with each stage. Two thirds of its
entries are defaults of services that such a Spark never uses (decision 0043).
"""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext

_FILES = ("mapred-default.xml", "yarn-default.xml")


def forget_unused(context: SparkContext) -> None:
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

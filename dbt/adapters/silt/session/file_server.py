"""Hides the name under which Spark's RPC port serves files.

The port serves files to every client, with or without `spark.authenticate`, and before Spark 4.3 also files outside of
the folder with the name (SPARK-58056): another user of the machine could read each file that this user can read. Every
session registers the folder of its artifacts under the same name. So the name is replaced by a secret, which Spark's
own processes learn from the address of each file (decision 0082).
"""

from __future__ import annotations

import logging
import secrets
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkContext

_logger = logging.getLogger(__name__)

_OWNER: Final = "org.apache.spark.sql.artifact.ArtifactManager$"
_NAME: Final = "ARTIFACT_DIRECTORY_PREFIX"


def hide_name(context: SparkContext) -> None:
    """Gives the folder of artifacts a secret name, or logs a warning if this Spark keeps the name in another field.

    Args:
        context: a context on this machine, of which no session has run a statement yet.
    """
    assert context._jvm is not None
    try:
        _set(context._jvm, f"artifacts-{secrets.token_hex(16)}")
    except Py4JError:
        _logger.warning("This Spark's RPC port serves the files of sessions under a name that other users can guess")


def _set(jvm: Any, name: str) -> None:
    language = jvm.java.lang
    unsafe = language.Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe")
    unsafe.setAccessible(True)
    memory = unsafe.get(None)
    # The field is final: reflection can read it but not set it.
    field = language.Class.forName(_OWNER).getDeclaredField(_NAME)
    memory.putObject(memory.staticFieldBase(field), memory.staticFieldOffset(field), name)

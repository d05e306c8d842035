"""Creates the folders of a local Spark, and changes it after its start: removes settings, hides the name of files.

Only this user can read the folders of its log, rows and leftovers: Spark lets every user of the machine read the rows
that it writes for its own use. A process that is killed deletes nothing. Each folder contains a file that its process
keeps locked until it ends in any way, and the folders of ended processes are deleted. A process id would not do,
because containers may share a temporary folder.

Spark copies Hadoop's configuration several times for each statement, and sends it along with each stage. Two thirds of
its entries are defaults of MapReduce and YARN, which such a Spark never uses (decision 0043).

Spark's RPC port serves files to every client, with or without `spark.authenticate`, and before Spark 4.3 also files
outside of the folder with the name (SPARK-58056): another user of the machine could read each file that this user can
read. Every session registers the folder of its artifacts under the same name. So the name is replaced by a secret,
which Spark's own processes learn from the address of each file (decision 0082).
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkContext

from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.engine.kernel import file_locks

_logger = logging.getLogger(__name__)

_FILES: Final = ("mapred-default.xml", "yarn-default.xml")
_OWNER: Final = "org.apache.spark.sql.artifact.ArtifactManager$"
_FIELD: Final = "ARTIFACT_DIRECTORY_PREFIX"

_FOLDER_PREFIX = "silt-spark-"
_LOCK = "alive.lock"
_UNLOCKED_SECONDS = 86_400
"""The age after which a folder without the file is deleted: until then, its process may be about to create the file."""

LOCAL: Final = "spark.local.dir"

LOCAL_VARIABLE: Final = "SPARK_LOCAL_DIRS"
"""The environment variable that Spark prefers to the setting."""


def remove_hadoop_defaults(context: SparkContext) -> None:
    """Removes each entry that equals the default in these files of Hadoop; entries that the user has changed remain.

    Args:
        context: its master is `local`, with any number of cores, and its sessions have not read files yet.
    """
    jvm = spark_seams.java(context)
    configuration = spark_seams.hadoop_configuration(context)
    # When it loads these classes, Hadoop reads all defaults again, into every existing configuration.
    jvm.org.apache.hadoop.mapred.JobConf(configuration)
    jvm.org.apache.hadoop.hdfs.HdfsConfiguration(configuration)
    defaults = jvm.org.apache.hadoop.conf.Configuration(False)
    for name in _FILES:
        defaults.addResource(name)
    _entries(configuration).removeAll(_entries(defaults))


def _entries(configuration: Any) -> Any:
    """Returns the live entries, with their variables: the configuration's own methods return copies."""
    gateway = spark_seams.gateway()
    assert gateway is not None
    language = gateway.jvm.java.lang
    method = configuration.getClass().getDeclaredMethod("getProps", gateway.new_array(language.Class, 0))
    method.setAccessible(True)
    return method.invoke(configuration, gateway.new_array(language.Object, 0)).entrySet()


def hide_file_name(context: SparkContext) -> None:
    """Gives the folder of artifacts a secret name, or logs a warning if this Spark keeps the name in another field.

    Args:
        context: a context on this machine, of which no session has run a statement yet.
    """
    try:
        _set_name(spark_seams.java(context), f"artifacts-{secrets.token_hex(16)}")
    except Py4JError:
        _logger.warning("This Spark's RPC port serves the files of sessions under a name that other users can guess")


def _set_name(jvm: Any, name: str) -> None:
    language = jvm.java.lang
    unsafe = language.Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe")
    unsafe.setAccessible(True)
    memory = unsafe.get(None)
    # The field is final: reflection can read it but not set it.
    field = language.Class.forName(_OWNER).getDeclaredField(_FIELD)
    memory.putObject(memory.staticFieldBase(field), memory.staticFieldOffset(field), name)


def make(parent: str | None = None) -> str:
    """Creates a folder for this process, which only this user can read; deletes folders of ended processes.

    Args:
        parent: the parent folder, which is created if it is missing; by default the system's temporary folder.

    Raises:
        OSError: if the folder cannot be created.
    """
    above = Path(tempfile.gettempdir() if parent is None else parent)
    above.mkdir(parents=True, exist_ok=True)
    _sweep(above)
    folder = tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=above)  # of mode 0700
    held = os.open(Path(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    file_locks.acquire(held)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def make_below(folders: str) -> tuple[str, ...]:
    """Creates a folder in each folder that the setting lists; raises as `make` does."""
    return tuple(make(each) for each in _listed(folders))


def is_below(folders: str, above: str) -> bool:
    """Returns whether the first setting's folders are below the second setting's, as `make_below` creates them."""
    return [Path(each).parent for each in _listed(folders)] == [Path(each) for each in _listed(above)]


def local_conf(folders: Sequence[str]) -> dict[str, str]:
    """Returns Spark's setting for these folders; empty without folders."""
    return {LOCAL: ",".join(folders)} if folders else {}


@contextlib.contextmanager
def local_environment(conf: Mapping[str, str]) -> Iterator[None]:
    """Replaces the value of the variable, if it is set, by the setting's, for processes that the block starts."""
    named = os.environ.get(LOCAL_VARIABLE)
    if named is None or LOCAL not in conf:
        yield
        return
    os.environ[LOCAL_VARIABLE] = conf[LOCAL]
    try:
        yield
    finally:
        os.environ[LOCAL_VARIABLE] = named


def _listed(folders: str) -> list[str]:
    return [each.strip() for each in folders.split(",")]


def _sweep(temporary: Path) -> None:
    for folder in temporary.glob(f"{_FOLDER_PREFIX}*"):
        if _is_left(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    """Returns whether the folder is this user's and its process has ended."""
    try:
        found = folder.lstat()
    except OSError:  # another process has deleted it meanwhile
        return False
    try:
        if found.st_uid != os.geteuid() or not folder.is_dir() or folder.is_symlink():
            return False
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return time.time() - found.st_mtime > _UNLOCKED_SECONDS
    except OSError:
        return False
    try:
        return file_locks.acquire(descriptor, wait=False)
    except OSError:
        return False
    finally:
        os.close(descriptor)

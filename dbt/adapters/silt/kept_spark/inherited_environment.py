"""Reads the part of a process's environment that a Spark inherits: commands that differ in it need different Sparks."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

from dbt.adapters.silt.__version__ import version

_NAMES = (
    "HOME JAVA_HOME JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS LANG LD_LIBRARY_PATH PYTHONHASHSEED PYTHONHOME "
    "PYTHONPATH TMPDIR TZ HTTP_PROXY HTTPS_PROXY NO_PROXY"
).split()
_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "HADOOP_", "HIVE_", "KRB5", "LC_", "PYARROW_", "PYSPARK_", "SPARK_", "YARN_")
_OF_CONNECT = (
    *("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_"),
    "PYSPARK_VALIDATE_COLUMN_NAME_LEGACY",
)
"""These variables are for the client of a Spark; a connected command sets some of them itself."""

_INTERPRETERS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")

_SECRETS = ("DBT_ENV_SECRET", "DBT_ENGINE_ENV_SECRET")


def name_of(settings: Mapping[str, object], inherited: Mapping[str, object]) -> str:
    """Returns the name of the Spark for these settings and this environment: a hash that reveals neither of them."""
    text = json.dumps([settings, inherited], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(environment: Mapping[str, str] | None = None) -> dict[str, object]:
    """Returns the parts of this process that a Spark inherits from it.

    Args:
        environment: the variables; by default the variables of this process.
    """
    variables = os.environ if environment is None else environment
    return {
        "environment": {name: _identity(name, variables) for name in sorted(variables) if _counts(name, variables)},
        "folder": os.getcwd(),
        "java": _java(variables),
        "machine": machine(),
        "package": version,
        "pyspark": metadata.version("pyspark"),
        "python": [os.path.realpath(sys.prefix), platform.python_version()],
        "time zone": os.path.realpath("/etc/localtime"),
        "umask": umask(),
        "user": os.geteuid(),
    }


def machine() -> str:
    """Returns a name of the running system and container: machines share home folders, but no ports or process ids."""
    namespaces = [_text(os.readlink, f"/proc/self/ns/{name}") for name in ("net", "mnt", "pid")]
    system = _text(_content, "/proc/sys/kernel/random/boot_id") or socket.gethostname()
    return hashlib.sha256("|".join([system, *namespaces]).encode()).hexdigest()[:16]


def environment_of_server() -> dict[str, str]:
    """Returns the environment of a server that this process starts, without dbt's secrets and client variables."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_OF_CONNECT) and not name.startswith(_SECRETS)
    }


def _counts(name: str, variables: Mapping[str, str]) -> bool:
    if name.startswith(_OF_CONNECT):
        return False
    if name in _INTERPRETERS and interpreter(variables[name]) == interpreter(sys.executable):
        return False  # a Spark without the variable uses this interpreter, too
    return name.upper() in _NAMES or name.startswith(_PREFIXES)


def _identity(name: str, variables: Mapping[str, str]) -> object:
    return interpreter(variables[name]) if name in _INTERPRETERS else variables[name]


def interpreter(name: str) -> list[str]:
    """Returns the identity of the Python that a path or a name in PATH starts: scripts write `python` or `python3`.

    The folder counts as well: the links of two virtual environments lead to one file, but find other packages.
    """
    path = shutil.which(name)
    return [name] if path is None else [os.path.realpath(os.path.dirname(path)), os.path.realpath(path)]


def umask() -> int:
    """Returns the permissions that new files of this process do not get, as a mode."""
    status = _text(_content, "/proc/self/status")
    for line in status.splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    mask = os.umask(0o077)  # without /proc, Python can only read the umask by changing it for all threads
    os.umask(mask)
    return mask


def _java(variables: Mapping[str, str]) -> list[object]:
    """Returns the Java that Spark would start and the time of its installation, or an empty list if Java is missing."""
    home = variables.get("JAVA_HOME")
    path = shutil.which("java", path=str(Path(home) / "bin") if home else variables.get("PATH"))
    if path is None:
        return []
    real = os.path.realpath(path)
    return [real, os.stat(real).st_mtime_ns]


def _content(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def _text(read: Callable[[str], str], path: str) -> str:
    try:
        return read(path)
    except OSError:
        return ""  # the file does not exist on this system

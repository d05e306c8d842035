"""Computes the name of a process's command server, from everything that Python and its packages read at their start.

The arguments, the folder and most variables are not part of the name: dbt reads them while it runs, and a fork gets
them from its client.
"""

from __future__ import annotations

import os
import resource
import sys
import zlib
from collections.abc import Iterator
from typing import Final

from dbt.adapters.silt.__version__ import version

READ_AT_START: Final = (
    # Python, the loader, the C library and its memory
    "PYTHON", "LD_", "DYLD_", "GLIBC_", "MALLOC_", "LANG", "LC_", "TZ", "HOME",
    # packages, when they are imported
    "ARROW_", "GRPC_", "JAX_", "KMP_", "MKL_", "NETWORKX_", "NPY_", "NUMEXPR_", "NUMPY_", "OMP_", "OPENBLAS_",
    "OPENSSL_", "OTEL_", "PANDAS_", "PROTOCOL_BUFFERS_", "PY4J_", "PYSPARK_", "SPARK_", "SSL_",
    "MSGPACK_", "PYTZ_", "TEMPORARILY_DISABLE_PROTOBUF", "_NETWORKX_", "_PYTHON_",
    "DBT_ENGINE_RECORDER_", "DBT_RECORDER_", "DBT_MACRO_DEBUGGING",
    "DBT_PACKAGE_HUB_URL", "DBT_ENGINE_PACKAGE_HUB_URL", "DBT_SPARK_LOG_LEVEL",
)  # fmt: skip
"""Prefixes of the environment variables that are read before dbt reads its arguments."""

_NAMESPACES: Final = ("mnt", "net", "pid", "user")


def key() -> str:
    """Returns the server key of this process; processes with equal keys share a server."""
    return "\n".join((*_of_python(), *_of_variables(), *_of_system()))


def short_name(text: str) -> str:
    """Returns a name of 16 digits for a key, because the path of a socket must be short."""
    data = text.encode("utf-8", "surrogateescape")
    return f"{zlib.crc32(data):08x}{zlib.adler32(data):08x}"


def _of_python() -> Iterator[str]:
    yield version
    yield from (sys.version, sys.executable, sys.prefix, sys.base_prefix)
    yield from (repr(sys.flags), repr(sys.warnoptions), repr(sys._xoptions))
    yield from (os.path.abspath(each) for each in sys.path)


def _of_variables() -> Iterator[str]:
    yield from sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(READ_AT_START))


def _of_system() -> Iterator[str]:
    """Yields the properties that a fork cannot change: user, groups, hard limits, and its view of the machine."""
    yield repr((os.getuid(), os.geteuid(), os.getgid(), os.getegid(), sorted(os.getgroups())))
    yield f"{os.getpriority(os.PRIO_PROCESS, 0)} {os.uname().nodename}"
    yield repr([resource.getrlimit(each)[1] for each in limits()])
    yield from (
        os.readlink(f"/proc/self/ns/{each}") for each in _NAMESPACES if os.path.lexists(f"/proc/self/ns/{each}")
    )


def limits() -> tuple[int, ...]:
    """Returns the numbers of the resources that have limits."""
    return tuple(sorted({number for name, number in vars(resource).items() if name.startswith("RLIMIT_")}))

"""Says what of a process decides which command server answers it: all that Python and its packages take in at start.

What dbt reads while it runs (its arguments, its folder, most variables) is no part of it: a fork gets that from its
client.
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
"""The beginnings of the names of variables that are read before dbt has its arguments."""

_NAMESPACES: Final = ("mnt", "net", "pid", "user")


def key() -> str:
    """The surroundings of this process as text; equal texts have one server."""
    return "\n".join((*_of_python(), *_of_variables(), *_of_system()))


def short_name(text: str) -> str:
    """A name of 16 digits for a key: the path of a socket has room for little more."""
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
    """What a fork cannot change for itself: user, groups, limits that only fall, and what it sees of the machine."""
    yield repr((os.getuid(), os.geteuid(), os.getgid(), os.getegid(), sorted(os.getgroups())))
    yield f"{os.getpriority(os.PRIO_PROCESS, 0)} {os.uname().nodename}"
    yield repr([resource.getrlimit(each)[1] for each in limits()])
    yield from (
        os.readlink(f"/proc/self/ns/{each}") for each in _NAMESPACES if os.path.lexists(f"/proc/self/ns/{each}")
    )


def limits() -> tuple[int, ...]:
    """The resources whose limits a process has."""
    return tuple(sorted({number for name, number in vars(resource).items() if name.startswith("RLIMIT_")}))

"""Encodes the request of a client: a command line, and everything that its process was started with."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

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


def server_key() -> str:
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


RUN, STATUS, STOP = b"run", b"status", b"stop"
"""The requests."""

READY, STALE, REFUSED, START = b"R", b"S", b"N", b"G"
"""READY: the server waits for START to run the command. STALE: the server ends because installed packages have changed;
the client starts a new server. REFUSED: the server does not serve this client."""

STANDARD: Final = (0, 1, 2)
_LENGTH: Final = 4
_LONGEST: Final = 64 * 1024 * 1024
_NOT_SENT: Final = (signal.SIGKILL, signal.SIGSTOP)


class BrokenOffError(ConnectionError):
    """The other end has closed the connection, or does not speak this protocol."""


class Request(NamedTuple):
    """A command as its client was started.

    Attributes:
        verb: RUN, STATUS or STOP.
        key: the client's server key.
        arguments: the command line, which begins with dbt's own file.
        path: the module path, as `sys.path`.
        environment: all variables, `NAME=VALUE`.
        mask: the umask.
        ignored, blocked: signal numbers.
        limits: pairs of a resource and its soft limit; -1 means unlimited.
        processors: the processors that the command may run on.
        streams: the open descriptors among 0, 1 and 2.
    """

    verb: bytes
    key: str
    arguments: tuple[bytes, ...] = ()
    path: tuple[str, ...] = ()
    environment: tuple[bytes, ...] = ()
    mask: int = 0o022
    ignored: tuple[int, ...] = ()
    blocked: tuple[int, ...] = ()
    limits: tuple[tuple[int, int], ...] = ()
    processors: tuple[int, ...] = ()
    streams: tuple[int, ...] = ()


def valid_signals() -> tuple[int, ...]:
    """Returns the signals that a process can handle or ignore."""
    return tuple(sorted(int(each) for each in signal.valid_signals() if each not in _NOT_SENT))


def send(connection: socket.socket, request: Request, descriptors: tuple[int, ...] = ()) -> None:
    """Sends a request, and with it the descriptors of its streams and, last, of its folder."""
    data = b"\0".join(_fields(request))
    header = len(data).to_bytes(_LENGTH, "big")
    if descriptors:
        socket.send_fds(connection, [header], list(descriptors))
    else:
        connection.sendall(header)
    connection.sendall(data)


def receive(connection: socket.socket) -> tuple[Request, list[int]]:
    """Receives the request of a client, and the descriptors that came with it.

    Raises:
        BrokenOffError: if the client sends no request.
    """
    header, descriptors, _, _ = socket.recv_fds(
        connection, _LENGTH, len(STANDARD) + 1, socket.MSG_WAITALL | socket.MSG_CMSG_CLOEXEC
    )
    length = int.from_bytes(header, "big")
    if len(header) != _LENGTH or length > _LONGEST:
        raise BrokenOffError("the client sent no request")
    return _request(exactly(connection, length)), descriptors


def exactly(connection: socket.socket, size: int) -> bytes:
    """Receives the next bytes.

    Raises:
        BrokenOffError: if the other end closes the connection before.
    """
    data = bytearray()
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise BrokenOffError("the connection was closed")
        data += chunk
    return bytes(data)


_LISTS: Final = 8


def _fields(request: Request) -> list[bytes]:
    """Returns the request as strings; before each list, a string contains the list's length."""
    lists = [
        list(request.arguments),
        [os.fsencode(each) for each in request.path],
        list(request.environment),
        _numbers(request.ignored),
        _numbers(request.blocked),
        [b"%d %d" % each for each in request.limits],
        _numbers(request.processors),
        _numbers(request.streams),
    ]
    lengths = _numbers(tuple(map(len, lists)))
    return [
        request.verb,
        os.fsencode(request.key),
        b"%d" % request.mask,
        *lengths,
        *(one for each in lists for one in each),
    ]


def _request(data: bytes) -> Request:
    try:
        verb, key, mask, *rest = data.split(b"\0")
        lists, start = [], _LISTS
        for length in map(int, rest[:_LISTS]):
            lists.append(rest[start : start + length])
            start += length
        arguments, path, environment, ignored, blocked, limits, processors, streams = lists
        return Request(
            verb,
            os.fsdecode(key),
            tuple(arguments),
            tuple(map(os.fsdecode, path)),
            tuple(environment),
            int(mask),
            tuple(map(int, ignored)),
            tuple(map(int, blocked)),
            tuple((int(number), int(limit)) for number, limit in map(bytes.split, limits)),
            tuple(map(int, processors)),
            tuple(map(int, streams)),
        )
    except ValueError as error:
        raise BrokenOffError("the client did not send a request") from error


def _numbers(numbers: tuple[int, ...]) -> list[bytes]:
    return [b"%d" % each for each in numbers]

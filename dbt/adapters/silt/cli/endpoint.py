"""`silt endpoint`: serves the warehouse to BI tools, notebooks and drivers of other languages."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from argparse import ArgumentTypeError, BooleanOptionalAction, Namespace
from typing import TYPE_CHECKING, Any, Final

from dbt.adapters.silt.cli.warehouses import Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, InvalidSettingError
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.silt.cli import sql
else:
    sql = lazy_module("dbt.adapters.silt.cli.sql")

_LONGEST: Final = 365 * 24 * 60 * 60
"""The largest limit of a statement's time, in seconds."""

MODULE: Final = "dbt.adapters.silt.endpoint.process"
_OPTIONS: Final = (
    "host",
    "port",
    "connect_port",
    "token_file",
    "tls_cert",
    "tls_key",
    "read_only",
    "max_rows",
    "max_seconds",
    "idle",
    "json",
)
_DESCRIPTION = """\
Serves the warehouse, with all statements of this package, to programs that speak HiveServer2's protocol: PyHive and
Superset, beeline and DBeaver, Metabase's Spark SQL, dbt-spark's method `thrift`. It starts a Spark as configured in
the profile; each connection has a session of its own. Clients send a token as their password: the content of a file
that only you can read, whose place is printed, or of the environment variable SILT_ENDPOINT_TOKEN. With --connect-port,
it also serves PySpark and other programs that speak Spark Connect, with a Spark that is kept. Other machines can
connect only with --host, which needs a certificate and allows queries only, unless --no-read-only is given."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "endpoint", "serve the warehouse to BI tools and drivers", _DESCRIPTION)
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="the address, by default 127.0.0.1")
    parser.add_argument("--port", type=int, default=10000, metavar="N", help="the port, by default 10000; 0: any")
    parser.add_argument(
        "--connect-port", type=int, metavar="N", help="also serve Spark Connect, at this port; 0: any; Spark's is 15002"
    )
    parser.add_argument("--token-file", metavar="FILE", help="the file of the token, which only you can read")
    parser.add_argument("--tls-cert", metavar="FILE", help="the certificate chain in PEM format: clients then use TLS")
    parser.add_argument("--tls-key", metavar="FILE", help="the key of the certificate, if it is in another file")
    parser.add_argument(
        "--read-only", action=BooleanOptionalAction, help="only queries and temporary views; the default with --host"
    )
    parser.add_argument(
        "--max-rows",
        type=_count,
        metavar="N",
        help="the most rows of a result; by default 1000000 by HiveServer2's protocol, whose results are kept in "
        "memory, and all by Spark Connect; 0: all",
    )
    parser.add_argument(
        "--max-seconds", type=_seconds, metavar="N", help="how long a statement may run; by default any time"
    )
    parser.add_argument(
        "--idle",
        type=float,
        default=60,
        metavar="MINUTES",
        help="when an unused session ends, by default 60",
    )


def run(arguments: Namespace) -> int:
    """Becomes the process that serves; it ends with Ctrl-C."""
    if importlib.util.find_spec("TCLIService") is None:
        raise InvalidSettingError(
            "the packages of the endpoint are not installed", remedy="Run: pip install 'dbt-silt[endpoint]'"
        )
    if arguments.tls_key is not None and arguments.tls_cert is None:
        raise InvalidArgumentError("a key is given without a certificate", remedy="Add --tls-cert")
    context = sql.shell_context(open_warehouse(arguments))
    options = {name: getattr(arguments, name) for name in _OPTIONS}
    print(context.notice.replace("this statement needs Spark", "the endpoint needs Spark"), file=sys.stderr, flush=True)
    return _become({**context.profile, "options": options})


def _become(request: dict[str, Any]) -> int:
    """Replaces this process by the process that serves, which reads the request from a pipe."""
    read, write = os.pipe()
    with os.fdopen(write, "w") as pipe:
        json.dump(request, pipe)
    os.set_inheritable(read, True)
    os.execv(sys.executable, [sys.executable, "-m", MODULE, str(read)])


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= _LONGEST:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds")
    return found


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text)

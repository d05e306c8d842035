"""`silt serve`: shows the page of `silt report`, and updates it while runs are in progress."""

from __future__ import annotations

import functools
import time
from argparse import Namespace

from dbt.adapters.silt.cli.output.answers import Answer
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.report import add_runs, source_of
from dbt.adapters.silt.cli.warehouses import Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.report.document import document
from dbt.adapters.silt.report.server import LiveData, ReportServer

_DESCRIPTION = """\
Serves the page of `silt report` at a local address, which it prints, and updates the page during runs. The page cannot
be reached from the network, nor on this machine without the printed address. No files are served. Ctrl-C stops it."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "serve", "serve that page, and update it during runs", _DESCRIPTION)
    add_runs(parser)
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port, by default a free port")


def run(arguments: Namespace) -> int:
    """Prints the address, and serves until Ctrl-C."""
    source = source_of(open_warehouse(arguments), arguments)
    live = LiveData(functools.partial(document, source), time.monotonic, SystemClock().now_ms)
    with ReportServer(arguments.port, live) as server:
        live.data()
        show(Answer({"url": server.url}, [f"{server.url}  (Ctrl-C stops it)"]), arguments.json)
        server.serve_forever(poll_interval=0.1)
    return 0

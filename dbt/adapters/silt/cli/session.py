"""`silt session`: lists or stops kept Sparks (`keep_alive`) and the command servers of `silt dbt`."""

from __future__ import annotations

import sys
import time
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dbt.adapters.silt.cli.output.answers import UNKNOWN, Answer, Rows, count, duration, iso
from dbt.adapters.silt.cli.output.rendering import complain, show
from dbt.adapters.silt.cli.warehouses import Subparsers
from dbt.adapters.silt.command_server import control
from dbt.adapters.silt.command_server.control import ServerStatus
from dbt.adapters.silt.command_server.sockets import UnsafeFolderError
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, KeptSparkError
from dbt.adapters.silt.engine.kernel.printable import number_of
from dbt.adapters.silt.kept_spark.listing import KeptSpark, memory, running, stop

_T = TypeVar("_T")
_DESCRIPTION = """\
Shows or stops your processes that keep running between commands: Sparks, if a profile sets `keep_alive`, and the
command servers of `silt dbt`. `status` shows each Spark's address, processes, memory and age, and the commands that use
it, or how long it has been idle. `stop` stops all of them, or the Spark with an id, and waits until they have ended.
Before it stops Sparks of other projects than that of the current folder, it asks; without a terminal it refuses,
unless --yes is given. A Spark in use keeps running, and the exit code is 2; with --force it is stopped anyway:
the statements that it runs fail, and commit nothing. Commands that a command server runs are not interrupted."""
_COLUMNS = ("id", "address", "project", "master", "Spark", "#process", "#Java", "#MiB", "#age", "#idle", "used by")
_OF_SERVERS = ("process", "#MiB", "#age", "#commands", "log")
_MIB = 1024**2


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subparsers.add_parser(
        "session",
        help="show or stop processes that keep running: Spark and dbt",
        description=_DESCRIPTION,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("status", "stop"), help="what to do")
    parser.add_argument("name", metavar="ID", nargs="?", help="only the Spark whose id begins with this")
    parser.add_argument("--id", metavar="ID", help="the same")
    parser.add_argument("-y", "--yes", action="store_true", help="with stop: also stop Sparks of other projects")
    parser.add_argument("--force", action="store_true", help="with stop: also stop a Spark in use")
    parser.add_argument("--json", action="store_true", help="print one JSON value, for programs")


def run(arguments: Namespace) -> int:
    """Lists or stops kept Sparks and command servers."""
    name = arguments.name or arguments.id
    chosen = _chosen(list(running()), name)
    if arguments.action == "status":
        servers = () if name else _of_servers(control.status)
        return show(answer(chosen, servers, time.time()), arguments.json)
    if not (name or arguments.yes or _may_stop(chosen)):
        complain("nothing was stopped")
        return 1
    ended = 0 if name else _of_servers(control.stop)
    for each in chosen:
        stop(each, force=arguments.force)
    names = [each.name for each in chosen]
    said = [*names, *([number_of(ended, "command server")] if ended else [])]
    text = f"stopped: {', '.join(said)}" if said else "nothing is running"
    return show(Answer({"stopped": names, "command_servers_stopped": ended}, [text]), arguments.json)


def _may_stop(chosen: Sequence[KeptSpark]) -> bool:
    """Asks before Sparks of other projects are stopped, and returns the answer.

    Raises:
        InvalidArgumentError: if it cannot ask.
    """
    here = Path.cwd()
    foreign = [each for each in chosen if not here.is_relative_to(each.record.folder)]
    if not foreign:
        return True
    named = ", ".join(map(_with_users, foreign))
    if not sys.stdin.isatty():
        raise InvalidArgumentError(
            f"that would stop Sparks of other projects: {named}",
            remedy="Name a Spark, as in `silt session stop ID`, or stop all of them with --yes",
        )
    print(f"Also stop Sparks of other projects: {named}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _with_users(spark: KeptSpark) -> str:
    users = ", ".join(f"`{use.command}` (process {use.pid})" for use in spark.users)
    return f"{spark.name} of {spark.record.folder}{f', used by {users}' if users else ''}"


def _of_servers(ask: Callable[[], _T]) -> _T:
    """Returns the answer of the command servers.

    Raises:
        KeptSparkError: if their folder cannot be used.
    """
    try:
        return ask()
    except (OSError, UnsafeFolderError) as error:
        raise KeptSparkError(
            f"the command servers of `silt dbt` cannot be reached: {error}",
            remedy="Set XDG_RUNTIME_DIR to a folder that only you can use",
        ) from error


def _chosen(found: Sequence[KeptSpark], name: str | None) -> Sequence[KeptSpark]:
    """Returns the Sparks whose id begins with the name.

    Raises:
        InvalidArgumentError: if no Spark has the id.
    """
    chosen = [each for each in found if each.name.startswith(name or "")]
    if name and not chosen:
        known = ", ".join(each.name for each in found) or "none"
        raise InvalidArgumentError(f"no kept Spark has the id {name}", remedy=f"The kept Sparks are: {known}")
    return chosen


def answer(found: Sequence[KeptSpark], servers: Sequence[ServerStatus], now: float) -> Answer:
    """Renders the Sparks and the command servers.

    Args:
        now: the current time in seconds since 1970.
    """
    document = {"sparks": [_json(each) for each in found], "command_servers": [_server_json(each) for each in servers]}
    blocks = [
        Rows(_COLUMNS, [_row(each, now) for each in found], empty="no Spark is kept"),
        *([Rows(_OF_SERVERS, [_server_row(each) for each in servers], title="dbt, for `silt dbt`")] if servers else []),
    ]
    return Answer(document, blocks)


def _row(spark: KeptSpark, now: float) -> list[str]:
    record, used = spark.record, memory(spark)
    return [
        spark.name,
        record.address,
        record.folder,
        record.master,
        record.spark,
        str(record.keeper),
        str(record.java),
        UNKNOWN if used is None else str(used // _MIB),
        duration(max(0.0, now - record.started)),
        UNKNOWN if spark.idle_since is None else duration(max(0.0, now - spark.idle_since)),
        ", ".join(f"{use.command} ({use.pid})" for use in spark.users) or UNKNOWN,
    ]


def _json(spark: KeptSpark) -> dict[str, Any]:
    record = spark.record
    return {
        "id": spark.name,
        "address": record.address,
        "project": record.folder,
        "master": record.master,
        "spark": record.spark,
        "package": record.package,
        "process": record.keeper,
        "java_process": record.java,
        "memory_bytes": memory(spark),
        "started_at": iso(int(record.started * 1000)),
        "idle_since": None if spark.idle_since is None else iso(int(spark.idle_since * 1000)),
        "used_by": [{"command": use.command, "process": use.pid} for use in spark.users],
    }


def _server_row(server: ServerStatus) -> list[str]:
    age = duration(server.seconds)
    return [str(server.process), str(server.memory // _MIB), age, count(server.commands), str(server.log)]


def _server_json(server: ServerStatus) -> dict[str, Any]:
    return {
        "process": server.process,
        "memory_bytes": server.memory,
        "age_seconds": server.seconds,
        "commands": server.commands,
        "keep_alive_seconds": server.keep_alive,
        "log": str(server.log),
    }

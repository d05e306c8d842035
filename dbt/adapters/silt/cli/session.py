"""`silt session`: shows the Sparks that stay between commands (`keep_alive`), and ends them."""

from __future__ import annotations

import time
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import Any

from dbt.adapters.silt.cli.options import Subparsers
from dbt.adapters.silt.cli.rendering import UNKNOWN, Answer, Rows, duration, iso, show
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.kept_spark.listing import KeptSpark, memory, running, stop

_DESCRIPTION = """\
Shows the Sparks of yours that stay between commands, as `keep_alive` in a profile has them do, and ends them.
`status` shows each with its address, processes, memory, age, and the commands that use it, or for how long none has.
`stop` ends all of them, or the one of an id, and waits until they are gone. One that commands use goes on, and the
exit code is 2; with --force it ends under them: their statements fail, and commit nothing."""
_COLUMNS = ("id", "address", "project", "master", "Spark", "#process", "#Java", "#MiB", "#age", "#idle", "used by")
_MIB = 1024**2


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subparsers.add_parser(
        "session",
        help="show or end the Sparks that stay between commands",
        description=_DESCRIPTION,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("status", "stop"), help="what to do")
    parser.add_argument("--id", metavar="ID", help="only the Spark whose id begins so")
    parser.add_argument("--force", action="store_true", help="stop: end it although commands use it")
    parser.add_argument("--json", action="store_true", help="print one JSON value, for programs")


def run(arguments: Namespace) -> int:
    """Prints the Sparks, or which ones were ended."""
    chosen = _chosen(list(running()), arguments.id)
    if arguments.action == "status":
        return show(answer(chosen, time.time()), arguments.json)
    for each in chosen:
        stop(each, force=arguments.force)
    names = [each.name for each in chosen]
    said = f"stopped: {', '.join(names)}" if names else "no Spark stays"
    return show(Answer({"stopped": names}, [said]), arguments.json)


def _chosen(found: Sequence[KeptSpark], name: str | None) -> Sequence[KeptSpark]:
    """The Sparks whose id begins so.

    Raises:
        InvalidArgumentError: there is none.
    """
    chosen = [each for each in found if each.name.startswith(name or "")]
    if name and not chosen:
        known = ", ".join(each.name for each in found) or "none"
        raise InvalidArgumentError(
            f"no Spark that stays has the id {name}", remedy=f"Name one of those that do: {known}"
        )
    return chosen


def answer(found: Sequence[KeptSpark], now: float) -> Answer:
    """Renders the Sparks.

    Args:
        now: seconds since 1970.
    """
    document = {"sparks": [_json(each) for each in found]}
    rows = [_row(each, now) for each in found]
    return Answer(document, [Rows(_COLUMNS, rows, empty="no Spark stays")])


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

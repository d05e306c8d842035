"""Writes a class-data archive of Spark's classes, from which Java starts Spark and runs the first statements sooner.

Java 25 and later write an ahead-of-time cache instead, which also has the profile of the methods. The archive belongs
to a virtual environment and its versions of PySpark and of Java; Java ignores an archive that does not fit.
`python -m dbt.adapters.silt.session.class_archive` writes it. The first dbt command that starts Spark in an environment
without an archive runs that module in the background when it ends, except in a container and in CI. No process waits
for it, and its failures are not reported (decision 0048).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel import file_locks
from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.session.java_launch import (
    Java,
    archive_path,
    find_java,
    from_archive,
    make_own_archive,
    to_archive,
)
from dbt.adapters.silt.session.spark import SessionSettings, note_launch, open_session, stop_spark

if TYPE_CHECKING:
    import pyarrow as pa

    from dbt.adapters.silt.engine import warehouse as engine
    from dbt.adapters.silt.runs import fetch
else:  # a kept Spark starts before the engine is imported
    pa = lazy_module("pyarrow")
    engine = lazy_module("dbt.adapters.silt.engine.warehouse")
    fetch = lazy_module("dbt.adapters.silt.runs.fetch")

SWITCH: Final = "SILT_CLASS_ARCHIVE"
"""The environment variable that decides whether commands create an archive: never (`off`) or everywhere (`on`)."""

NOTICE: Final = (
    "When this command ends, Spark's class archive is created in the background, once for this virtual environment: "
    f"later commands start sooner. {SWITCH}=off prevents it"
)
_IN_BACKGROUND = "--in-background"
_NICEST = 19
_OF_CONTAINERS: Final = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that Docker and Podman create in each container."""

_OF_SHORT_LIVED_MACHINES: Final = ("CI", "KUBERNETES_SERVICE_HOST")
WAREHOUSE: Final = "rehearsal"
"""The name of the warehouse in the given folder."""

STATEMENTS: Final = (
    """
    create or replace table main.orders as
    select id, concat('customer ', id % 7) as customer, cast(id as decimal(12, 2)) as amount,
        current_timestamp() as at, id % 2 = 0 as is_open
    from range(20)
    """,
    "select count(*) as failures, count(*) != 0 as should_warn from (select id from main.orders where id is null) t",
    """
    merge into main.orders as DBT_INTERNAL_DEST
    using (
        select id + 5 as id, customer, amount, at, false as is_open from main.orders where id < 10
    ) as DBT_INTERNAL_SOURCE
    on DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id
    when matched then update set * when not matched then insert *
    """,
    """
    create or replace table main.days partitioned by (day) as
    with ranked as (
        select *, row_number() over (partition by customer order by at desc, id) as nth, lag(amount) over (order by id)
        from main.orders
    )
    select customer, cast(at as date) as day, date_trunc('month', at) as month, count(*) as orders,
        count(distinct id) as ids, sum(amount) as amount, avg(amount) as mean, min(at) as first_at, max(nth) as most,
        sum(case when is_open then amount else 0 end) as open_amount, percentile(id, 0.5) as middle,
        collect_list(id) as list, max(coalesce(customer, 'none')) as name
    from ranked group by all having count(*) > 0
    """,
    "create or replace view main.joined as select o.*, d.orders, d.day from main.orders o left join main.days d "
    "using (customer) where o.id in (select id from main.orders where is_open) or d.day is null",
    "create or replace table main.wide as select * from main.joined union all select * from main.joined "
    "order by id limit 30",
    "insert into main.orders select id + 100, customer, amount, at, is_open from main.orders",
    "insert overwrite main.days select * from main.days",
    "insert into main.days replace where day = current_date() select * from main.days where day = current_date()",
    "update main.orders set amount = amount + 1, customer = upper(trim(customer)) where id between 3 and 9",
    "delete from main.orders where id > 115",
    """
    merge into main.orders as t using (
        select coalesce(n.id, o.id) as id, n.amount, md5(cast(o.id as string)) as hash, o.id is null as is_new
        from (select * from main.orders where id < 50) o
        full outer join (select id + 1 as id, amount from main.orders) n on o.id = n.id
    ) as s on t.id = s.id and s.is_new = false
    when matched and s.amount is null then delete
    when matched and t.amount <> s.amount then update set t.amount = s.amount
    when not matched and s.is_new then insert (id, amount, customer) values (s.id, s.amount, s.hash)
    """,
    "create or replace table main.seed as select cast(id as bigint) as id, cast(name as string) as name from seed_rows",
    "select customer as unique_field, count(*) as n_records from main.orders where customer is not null "
    "group by customer having count(*) > 1",
    "with all_values as (select customer as value_field, count(*) as n_records from main.orders group by customer) "
    "select * from all_values where value_field not in ('a', 'b')",
    "with child as (select customer from main.orders where customer is not null), parent as (select customer from "
    "main.days) select c.customer from child c left join parent p on c.customer = p.customer where p.customer is null",
    "select x.id, exists(x.items, i -> i > 1) as e, x.items[0] as i, get_json_object('{\"a\": 1}', '$.a') as j, "
    "try_cast('1' as int) as k, split('a,b', ',') as l, regexp_replace('abc', 'b', '') as r, datediff(now(), now()) d "
    "from (select id, array(id, 2) as items from main.orders) x lateral view explode(items) e as item",
    "alter table main.orders set tblproperties ('comment' = 'rehearsed')",
    "comment on table main.orders is 'rehearsed'",
    "alter table main.orders add columns (note string)",
    "describe table extended main.orders",
    "describe history main.orders",
    "optimize main.orders",
    "drop view main.joined",
    "drop table main.seed",
)
"""Statements as materializations, snapshots, tests and hooks write them."""


def rehearse(spark: SparkSession, folder: str) -> None:
    """Runs the statements in turn, and fetches the rows of the queries among them.

    Args:
        spark: a session of its own.
        folder: the parent folder of the warehouse; the caller deletes it.

    Raises:
        SiltError: if a statement failed.
    """
    warehouse = engine.Warehouse(spark, str(Path(folder, WAREHOUSE)))
    rows = spark.createDataFrame(pa.table({"id": ["1", "2"], "name": ["one", None]}))
    rows.createOrReplaceTempView("seed_rows")
    for text in STATEMENTS:
        frame = warehouse.execute(text).dataframe
        if frame is not None:
            fetch.fetchable(frame).toArrow()


def _write_archive(path: Path, java: Java) -> bool:
    """Starts Spark, runs typical statements, and writes the classes that it loaded to an archive.

    The command line of Java is noted next to it (`java_launch`).

    Returns:
        Whether Java wrote an archive that it can start from; otherwise no archive is kept.

    Raises:
        SparkUnavailableError: if Spark did not start.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    make_own_archive(java)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        unfinished = Path(folder) / path.name
        options = to_archive(unfinished)
        settings = SessionSettings(master="local[2]", spark_conf={"spark.driver.extraJavaOptions": " ".join(options)})
        session = open_session(settings)
        note_launch(path, options)
        rehearse(session, folder)
        stop_spark()
        check = [java.path, *from_archive(unfinished), "-version"]
        if not unfinished.exists() or subprocess.run(check, capture_output=True, check=False).returncode != 0:
            return False
        os.replace(unfinished, path)
        _forget_others(path, java)
        return True


def _forget_others(path: Path, java: Java) -> None:
    """Deletes the archives that this Java wrote for other files of Spark: they are of no further use."""
    for other in path.parent.glob(f"spark-*-java-{java.release}*"):
        if other.stem != path.stem:
            other.unlink(missing_ok=True)


def make_after_this_process() -> bool:
    """Has an archive created when this process ends, if it is missing and can be created; returns whether it will."""
    try:
        path = archive_path(find_java())
    except SparkUnavailableError:
        return False
    if path is None or not _is_missing(path) or _reason_against():
        return False
    atexit.register(_start)
    return True


def state() -> str:
    """Describes the archive of this environment's Spark and Java, for display."""
    path = archive_path(find_java())
    if path is None:
        return "none: archives are used in a virtual environment only"
    if path.is_file():
        return str(path)
    if _marker(path).exists():
        return "none: this Java created no usable archive"
    if reason := _reason_against():
        return f"none: {reason}"
    return "none yet: it is created in the background when this command ends"


def _reason_against() -> str | None:
    """Returns why commands in this environment create no archive, if there is a reason."""
    switch = os.environ.get(SWITCH, "").lower()
    if switch == "off":
        return f"{SWITCH} is off"
    is_short_lived = any(os.environ.get(name) for name in _OF_SHORT_LIVED_MACHINES)
    if switch != "on" and (is_short_lived or any(path.exists() for path in _OF_CONTAINERS)):
        command = "python -m dbt.adapters.silt.session.class_archive"
        return f"commands create no archive in a container or in CI; `{command}` does"
    return None


def _is_missing(path: Path) -> bool:
    """Returns whether the archive is missing, the last try did not fail, and the environment is writable."""
    above = next(folder for folder in path.parents if folder.exists())
    return not path.exists() and not _marker(path).exists() and os.access(above, os.W_OK)


def _marker(path: Path) -> Path:
    """Returns the file that records a failed try: another try would fail as well."""
    return path.with_suffix(".failed")


def _start() -> None:
    """Starts this module as a process that outlives this process and does not use the terminal."""
    command = [sys.executable, "-m", "dbt.adapters.silt.session.class_archive", _IN_BACKGROUND]
    nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    with contextlib.suppress(OSError, RuntimeError):
        os.posix_spawn(sys.executable, command, os.environ, file_actions=nowhere, setsid=True)


def _write_alone(path: Path, java: Java) -> bool:
    """Writes the archive unless it exists or another process is writing it; returns False if Java wrote no archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        if not file_locks.acquire(lock.fileno(), wait=False):
            return True
        if path.is_file() or _write_archive(path, java):
            _marker(path).unlink(missing_ok=True)
            return True
        _marker(path).write_text("Java created no usable archive. Delete this file to try again.\n")
        return False


def main(arguments: Sequence[str]) -> int:
    """Writes the archive for this environment's Spark and Java if it is missing."""
    if _IN_BACKGROUND in arguments:
        os.nice(_NICEST)
        os.chdir("/")
    java = find_java()
    path = archive_path(java)
    if path is None:
        print("No class-data archive is written outside of a virtual environment.", file=sys.stderr)
    elif not _write_alone(path, java):
        print("This Java cannot write a class-data archive; Spark starts without it.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The process that runs the statements of `silt sql` which need Spark, in order and in the same session.

A request is a line of JSON on the standard input: first the profile, then `{"run": text, "most": rows, "txn": pair,
"owner": name}` and `{"cancel": true}`. An answer is a line of JSON on the standard output, followed by an Arrow stream
of the number of bytes that it states. Warnings and progress are written to the standard error. The process ends with
its standard input.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pyarrow as pa
import yaml
from dbt_common.dataclass_schema import ValidationError
from dbt_common.exceptions import DbtBaseException

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.spark.errors import SPARKS
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.sql.ast import Statement
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.materializations.external.declared import of_artifact
from dbt.adapters.silt.runs.fetch import fetchable
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.session import stages
from dbt.adapters.silt.session.environment import Environment, environment_of
from dbt.adapters.silt.session.errors import known_error, shown
from dbt.adapters.silt.session.registration import Registration
from dbt.adapters.silt.session.spark import stop_spark
from dbt.adapters.silt.status_lines import choice
from dbt.adapters.silt.status_lines.display import Display, StatusLine

if TYPE_CHECKING:
    from dbt.adapters.silt.dbt_seams import project_values
else:
    project_values = lazy_module("dbt.adapters.silt.dbt_seams.project_values")

_INTERRUPT_SECONDS = 0.1
_AGAIN = "Run it again; if Spark ends often, give it more memory: `spark.driver.memory` in the profile's `spark_conf`"
_CHANGED_BY_RENDERING = re.compile(r"[{|>\\]")
"""Jinja, and characters that can end a string with a line break, which Jinja drops."""

_NAME = "sql"
"""The name of the statements in a status line."""


@dataclass(frozen=True)
class MetastoreEntries:
    """The entries of a shell's tables.

    Args:
        registration: the registration in the metastore, if the profile names it.
    """

    warehouse: Warehouse
    registration: Registration | None

    def names(self, statement: Statement) -> tuple[RelationName, ...]:
        """Returns the tables whose entries the statement may change.

        Call it before the statement runs, because a drop removes them.
        """
        return () if self.registration is None else self.warehouse.affected_tables(statement)

    def settle(self, names: tuple[RelationName, ...]) -> Iterator[str]:
        """Registers each table, or removes its entry if the table no longer exists; yields failures as warnings.

        The statement has already been committed.
        """
        return iter(()) if self.registration is None else self.registration.settle_committed(names)


def main() -> int:
    """Answers requests until the standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starting process requests each cancellation
    answers = _Answers.taking_standard_output()
    given = json.loads(sys.stdin.readline())
    try:
        credentials = credentials_of(given)
        if credentials.keep_alive:
            os.chdir(given["project_root"])  # as dbt does: a kept Spark belongs to its project's folder
        environment = environment_of(credentials, Path(given["project_root"]))
        root, manifest = given["project_root"], given.get("manifest")
        declared = of_artifact(Path(manifest), root) if manifest else frozenset()
        branch = given.get("branch")
        warehouse = environment.warehouse(
            declared, None if branch is None else environment.catalog.branch(credentials.database, branch)
        )
    except Exception as error:  # the starting process reports it
        answers.failed(error, None)
        return 1
    answers.send({"ready": True})
    try:
        shown_on = choice.display_on(sys.stderr, credentials.spark_conf) if given.get("shows_progress") else None
        _Statements.of(environment, warehouse, answers, shown_on).answer_all()
    finally:
        stop_spark()
    return 0


def credentials_of(given: Mapping[str, Any]) -> SiltCredentials:
    """Returns the credentials of a profile's target, as dbt reads them, or of a location, with Spark's defaults.

    Raises:
        InvalidSettingError: if the profile cannot be used.
    """
    branch = {"branch": given["named_branch"], "publish": "at_once"} if "named_branch" in given else {}
    if given["profile"] is None:
        return SiltCredentials(**given["credentials"], **branch)
    try:
        fields = fields_of_target(Path(given["profiles_dir"], "profiles.yml"), given["profile"], given["target"])
        fields = {**fields, **branch}
        of_warehouse = {name: value for name, value in fields.items() if name not in ("type", "threads")}
        SiltCredentials.validate(of_warehouse)
        return SiltCredentials.from_dict(of_warehouse)
    except (DbtBaseException, ValidationError) as error:
        raise errors.InvalidSettingError(str(error).strip(), remedy="Correct the profile") from error


def fields_of_target(path: Path, profile: str, target: str) -> Mapping[str, Any]:
    """Returns the fields of a target as dbt renders them; if possible without dbt, whose import takes seconds."""
    text = path.read_text(encoding="utf-8")
    if not _CHANGED_BY_RENDERING.search(text):
        fields = yaml.safe_load(text)[profile]["outputs"][target]
        return dict(json.loads(json.dumps(fields, default=str)))  # a YAML date is a string to dbt
    return project_values.fields_of_target(path.parent, profile, target)


@dataclass(frozen=True)
class _Answers:
    out: BinaryIO

    @classmethod
    def taking_standard_output(cls) -> _Answers:
        """Takes over the standard output for answers; all other output goes to the standard error."""
        sys.stdout.flush()
        own = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        return cls(own)

    def send(self, answer: Mapping[str, Any], rows: pa.Table | None = None) -> None:
        """Sends an answer; it is dropped if its reader has ended."""
        stream = b"" if rows is None else _stream(rows)
        with contextlib.suppress(BrokenPipeError):
            self.out.write(json.dumps({**answer, "bytes": len(stream)}).encode() + b"\n" + stream)
            self.out.flush()

    def failed(self, error: Exception, warehouse: Warehouse | None) -> None:
        """Sends the error, and whether this session is still usable."""
        known = error if warehouse is None else known_error(error, lambda: warehouse.catalog)
        if not isinstance(known, errors.SiltError) and (known is None or warehouse is None):
            traceback.print_exception(error)
            return self.send({"error": f"{type(error).__name__}: {error}", "damage": False, "ended": False})
        is_damage = isinstance(known, errors.TableDamagedError) and not isinstance(known, errors.NotATableError)
        text = shown(_of_no_run(cast("errors.SiltError", known)))
        return self.send({"error": text, "damage": is_damage, "ended": isinstance(known, errors.SparkUnavailableError)})


def _of_no_run(error: errors.SiltError) -> errors.SiltError:
    """Returns the error with a remedy for a statement outside of a run: no `dbt retry` will skip it."""
    if isinstance(error, errors.CommitStateUnknownError | errors.SparkEndedError):
        remedy = error.remedy_without_run if isinstance(error, errors.CommitStateUnknownError) else _AGAIN
        return type(error)(error.problem, remedy=remedy, table=error.table, version=error.version)
    return error


def _stream(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


@dataclass
class _Statements:
    """Runs each statement on a thread of its own, so that requests are read meanwhile."""

    warehouse: Warehouse
    answers: _Answers
    entries: MetastoreEntries
    line: StatusLine | None
    _affected: tuple[RelationName, ...] = ()
    """The tables of the open transaction whose entries in a metastore may change."""
    _idle: threading.Event = field(default_factory=threading.Event)
    _cancelled: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def of(
        cls, environment: Environment, warehouse: Warehouse, answers: _Answers, shown_on: Display | None
    ) -> _Statements:
        line = None if shown_on is None else shown_on.line(stages.stages_of(warehouse.spark))
        seen = warehouse if line is None else warehouse.for_session(warehouse.spark, progress=line.report)
        return cls(seen, answers, MetastoreEntries(seen, environment.registration()), line)

    def answer_all(self) -> None:
        self._idle.set()
        for line in sys.stdin:
            request = json.loads(line)
            if request.get("cancel"):
                if not self._idle.is_set():
                    print(
                        "silt: the statement is being cancelled; press Ctrl-C again to end Spark",
                        file=sys.stderr,
                        flush=True,
                    )
                self._cancel()
                continue
            self._idle.wait()
            self._idle.clear()
            self._cancelled.clear()
            owner = request["owner"]
            warehouse = self.warehouse if owner is None else self.warehouse.for_stored(owner)
            given = (warehouse, request["run"], request["most"], request["txn"])
            threading.Thread(target=self._run, args=given, daemon=True).start()
        self._cancel()
        if self.warehouse.roll_back():
            print("silt: the open transaction was rolled back", file=sys.stderr, flush=True)

    def _cancel(self) -> None:
        """Stops the running statement. Repeatedly: it runs several Spark jobs, and another may start after the last."""
        self._cancelled.set()
        with contextlib.suppress(*SPARKS):  # a Spark that has ended runs no jobs
            while not self._idle.wait(_INTERRUPT_SECONDS):
                self.warehouse.spark.interruptAll()

    def _run(self, warehouse: Warehouse, text: str, most: int | None, txn: tuple[str, int] | None) -> None:
        try:
            with self._shown(text):
                answer, rows = self._answer(warehouse, text, most, txn)
        except Exception as error:  # the process that waits for the answer reports it
            self._idle.set()
            if self._cancelled.is_set() and not isinstance(error, errors.CommitStateUnknownError):
                return self.answers.send({"cancelled": True})
            return self.answers.failed(error, self.warehouse)
        self._idle.set()
        return self.answers.send(answer, rows)

    def _shown(self, text: str) -> AbstractContextManager[None]:
        return contextlib.nullcontext() if self.line is None else self.line.running(_NAME, text)

    def _answer(
        self, warehouse: Warehouse, text: str, most: int | None, txn: tuple[str, int] | None
    ) -> tuple[Mapping[str, Any], pa.Table | None]:
        statement = warehouse.parsed(text)
        affected = (*self._affected, *self.entries.names(statement))
        self._affected = ()
        result = warehouse.execute(statement, txn if warehouse.written(statement) else None)
        if self.warehouse.is_in_transaction:
            self._affected = affected
        else:
            for warning in self.entries.settle(affected):
                print(f"silt: {warning}", file=sys.stderr, flush=True)
        frame = result.dataframe
        if frame is not None and frame.columns:
            rows = fetchable(frame if most is None else frame.limit(most), local_times=False).toArrow()
            return {"rows": True, "note": result.note}, rows
        if frame is not None:
            frame.collect()
        response = SiltResponse.of(result.outcome, None)
        return {"done": _text(response), "outcome": _document(response)}, None


def _text(response: SiltResponse) -> str:
    """Returns a line such as "MERGE silt.main.orders@v12: 4,120 inserted, 310 updated in 3 files"."""
    at = "@" if response.table_version is not None else ": "
    return f"{response.operation} {response.table}{at}{response}" if response.operation else str(response)


def _document(response: SiltResponse) -> dict[str, Any]:
    """Returns the effect of a statement, as JSON; only `ok` if it changes no table."""
    if response.operation is None:
        return {"ok": True}
    names = ("operation", "table", "table_version", "rows_inserted", "rows_updated", "rows_deleted", "files_added")
    document = response.to_dict()
    return {name: document[name] for name in (*names, "files_removed")}


if __name__ == "__main__":
    sys.exit(main())

"""The quarantine table of a table: the rows that a statement did not write because they fail audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.audits.audit import AT, FAILED, NODE, QUARANTINE_SUFFIX, RUN_ID, Audits
from dbt.adapters.silt.engine.audits.row_tests import KeyTest, RowTest
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.commands.commit import discard_folder
from dbt.adapters.silt.engine.commands.insert import insertion
from dbt.adapters.silt.engine.commands.insert.placement import Placement
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.tables import create
from dbt.adapters.silt.engine.commands.tables.create import Definition
from dbt.adapters.silt.engine.commands.target import TableLocation, Target, WriteSettings
from dbt.adapters.silt.engine.commands.writing import files
from dbt.adapters.silt.engine.commands.writing.files import Routed, Written
from dbt.adapters.silt.engine.kernel.errors import RelationExistsError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote, quoted_list
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Json
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    nullable,
)
from dbt.adapters.silt.engine.kernel.table.type_widening import is_widening
from dbt.adapters.silt.engine.kernel.transaction.branch_log import branch_of
from dbt.adapters.silt.engine.sql.ast import CreateMode
from dbt.adapters.silt.engine.statements.resolve.resolve import Cut
from dbt.adapters.silt.engine.statements.steps.context import Context
from dbt.adapters.silt.engine.statements.steps.create_target import create_target_of

_STRING: Final = PrimitiveType("string")
_PREFIX: Final = "__silt_repeated_"
_WORK: Final = "quarantinedFor"
"""The field of `commitInfo` for the transaction identifier of the statement whose rows were quarantined."""
_OWN: Final = StructType(
    (
        StructField(FAILED, ArrayType(_STRING, True)),
        StructField(RUN_ID, _STRING),
        StructField(NODE, _STRING),
        StructField(AT, PrimitiveType("timestamp")),
    )
)


@dataclass(frozen=True)
class Quarantine:
    """The quarantine table of a table.

    Args:
        context: the context of the statement that writes the table.
        table: the table's name.
    """

    context: Context
    table: RelationName

    @property
    def name(self) -> RelationName:
        """The name of the quarantine table, which exists once rows were quarantined."""
        return RelationName(self.table.database, self.table.schema, f"{self.table.identifier}{QUARANTINE_SUFFIX}")

    def check(self, schema: StructType) -> None:
        """Checks that rows with these columns can be added.

        Raises:
            RelationExistsError: if the name is that of a view, or of a table that lacks the columns of a quarantine or
                has a column whose type is neither the same nor wider.
            UnsupportedStatementError: if a column has the name of a column that the quarantine adds.
        """
        own = {each.name for each in _OWN}
        taken = [each for each in schema.names if each.lower() in own]
        if taken:
            raise UnsupportedStatementError(
                f"its column `{taken[0]}` has the name of a column of the quarantine table",
                remedy="Rename the column, or refuse failing rows instead of quarantining them",
                table=str(self.table),
            )
        there = self._columns()
        if there is None:
            return
        if not own <= there.keys():
            raise self._taken(f"it is not a quarantine table, which has the columns {quoted_list(sorted(own))}")
        wanted = _types(StructType((*schema, *_OWN)))
        for name, kind in there.items():
            new = wanted.get(name, kind)
            if new != kind and not is_widening(new, kind):
                raise self._taken(
                    f"its column {quote(name)} has the type {kind.sql_name}, and in the table {new.sql_name}"
                )

    def _columns(self) -> Mapping[str, DataType] | None:
        entry = self.context.catalog.find(self.name)
        if entry is None:
            return None
        if entry.kind is not RelationKind.TABLE:
            raise self._taken("it is a view")
        return _types(self.context.catalog.table(self.name).snapshot().schema)

    def _taken(self, why: str) -> RelationExistsError:
        return RelationExistsError(
            f"failing rows would be quarantined in it, but {why}; nothing was written",
            remedy="Rename or drop it",
            table=str(self.name),
        )

    def add(self, log: DeltaLog, made: Snapshot, routed: Sequence[Routed], names: Mapping[str, str]) -> None:
        """Commits the rows to the quarantine table, which is created if it is missing, and deletes their first files.

        Args:
            log: the table that the rows were written for.
            made: the version of that table that the statement would make, whose columns the rows have.
            names: the names of the audits, by the key of the test that a row fails.

        Raises:
            SiltError: as a commit; the files are then left to the caller.
        """
        audits = self.context.settings.audits or Audits(())
        parts = [self._labelled(log, made, each, names, audits) for each in routed]
        self._commit(reduce(DataFrame.unionAll, parts))
        for each in routed:
            discard_folder(log, each.folder)

    def _labelled(
        self, log: DeltaLog, made: Snapshot, routed: Routed, names: Mapping[str, str], audits: Audits
    ) -> DataFrame:
        """Returns the stored rows with the names of the audits that they were stored as failing."""
        rows = scan.read(self.context.spark, log, made, files_table(routed.adds))
        failed = F.array(*(F.lit(names[key]) for key in routed.failed))
        labels = {RUN_ID: audits.run_id, NODE: audits.node}
        texts = (F.lit(value).cast("string").alias(name) for name, value in labels.items())
        at = F.timestamp_millis(F.lit(log.clock.now_ms()).cast("long")).alias(AT)
        return rows.select("*", failed.alias(FAILED), *texts, at)

    def _commit(self, rows: DataFrame) -> None:
        context, settings = self.context, self._settings
        name = (self.name.database, self.name.schema, self.name.identifier)
        target = create_target_of(context, name, CreateMode.CREATE)
        assert target is not None, "the name is the warehouse's"
        if target.log is not None and target.exists:
            there = Target(str(self.name), target.log, target.log.snapshot())
            placement = Placement(by_name=True, schema_evolution=True)
            insertion.append(there, rows, placement, settings, instead_of=self._abandoned(there))
            return
        log = target.prepare(context)
        base = log.snapshot() if target.is_dropped else None
        mode = target.mode(CreateMode.CREATE)
        create.create(context.spark, TableLocation(log, base), Definition(), rows, mode, settings)
        target.finish(context, log)

    def _abandoned(self, there: Target) -> pa.Table:
        """Returns the files of the same work that an interrupted attempt has left on the branch of its run.

        The work is done once its own table has its transaction identifier, which it gets after the quarantine.
        """
        files, work = there.snapshot.files, self._work
        if work is None or branch_of(there.log) is None:
            return files.slice(0, 0)
        own = [each for each in there.log.newest_commits() if each.info.extra.get(_WORK) == work]
        paths = [action.path for each in own for action in each.actions if isinstance(action, AddFile)]
        return files.filter(pc.is_in(files["path"], value_set=pa.array(paths, pa.string())))

    @property
    def _work(self) -> list[Json] | None:
        txn = self.context.settings.txn
        return None if txn is None else list(txn)

    @property
    def _settings(self) -> WriteSettings:
        """The settings of its commit, which the statement's own commit follows in the same transaction."""
        settings = self.context.settings
        alone = replace(settings, txn=None, positions=(), build=None, audits=None, judge=None)
        return alone if self._work is None else alone.with_commit_info({_WORK: self._work})


def _types(schema: StructType) -> dict[str, DataType]:
    return {each.name.lower(): nullable(each.type) for each in schema}


def without_repeated(
    context: Context, log: DeltaLog, written: Written, state: Snapshot, tests: Sequence[KeyTest], cut: Cut
) -> Written:
    """Writes stored rows again, and routes the rows whose key occurs twice in a version with them.

    The rows and the version are stored files, so each row gets its label from values that cannot change.

    Args:
        written: the stored rows, which are not committed.
        state: the version with these rows.
        tests: the tests of the keys, which fail.
        cut: as in `judge_of`.
    """
    rows = scan.read(context.spark, log, state, files_table(written.adds))
    for at, test in enumerate(tests):
        (sql,) = context.resolver.of_future([test.repeated], log, state, cut)
        rows = _marked(rows, context.spark.sql(sql), test, f"{_PREFIX}{at}")
    routing = [_routing(test, f"{_PREFIX}{at}") for at, test in enumerate(tests)]
    new = files.write(rows, log, state.metadata, tests=routing, routable="true")
    return replace(
        new,
        metrics=written.metrics,
        tested=written.tested if not new.routed else {key: 0 for key, number in written.tested.items() if not number},
        routed=(*written.routed, *new.routed),
        routable=written.routable or written.rows,
        is_new=True,
    )


def _marked(rows: DataFrame, repeated: DataFrame, test: KeyTest, flag: str) -> DataFrame:
    """Returns the rows with a flag for the rows that count and whose key occurs twice."""
    names = [f"{flag}_{at}" for at in range(len(test.columns))]
    pairs = zip(test.columns, names, strict=True)
    is_same = reduce(Column.__and__, (F.col(quote(column)).eqNullSafe(F.col(name)) for column, name in pairs))
    joined = rows.join(repeated.toDF(*names).withColumn(flag, F.lit(True)), is_same, "left")
    counts = F.expr(test.counted.failing)
    return joined.withColumn(flag, counts & F.coalesce(F.col(flag), F.lit(False))).drop(*names)


def _routing(test: KeyTest, flag: str) -> RowTest:
    """Returns the test of each row by its flag."""
    return replace(test.counted, key=test.key, condition=quote(flag), columns=frozenset(), routes=True)

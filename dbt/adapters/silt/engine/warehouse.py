"""The front door: SQL and tables of a warehouse, from any PySpark program.

    from dbt.adapters.silt.engine import Warehouse

    warehouse = Warehouse(spark, "/data/warehouse")
    warehouse.sql("create table main.orders (id bigint not null, amount decimal(12, 2))")
    warehouse.write(df, "main.orders", txn=("load", 1))
    warehouse.table("main.orders").show()

Statements on tables of the warehouse go through the engine's commit protocol; Spark runs all other statements
unchanged.

A write with a `txn` takes place once, however often the program runs. A job keeps its position as the version,

    done = warehouse.transaction_version("main.orders", "orders-job")
    warehouse.write(read(after=done), "main.orders", txn=("orders-job", last_offset))

and a stream that writes several tables, even with MERGE, uses the id of its batch:

    def apply(batch, batch_id):
        warehouse = Warehouse(batch.sparkSession, "/data/warehouse")
        batch.createOrReplaceTempView("batch")
        warehouse.write(batch, "main.events", txn=("orders-stream", batch_id))
        warehouse.sql("merge into main.orders using batch ...", txn=("orders-stream", batch_id))

    stream.writeStream.foreachBatch(apply).option("checkpointLocation", ...).start()

Each table records its own application ids. Skipped writes are named in the log of the package, `dbt.adapters.silt`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt.adapters.silt.engine.audits.audit import Audits, OnFailure
from dbt.adapters.silt.engine.builds import session_reuse
from dbt.adapters.silt.engine.builds.build_facts import facts_of_query
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.locations import Location, check_locations
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.open_databases import OpenDatabases, open_databases
from dbt.adapters.silt.engine.commands.spark import errors, frames, hadoop_storage
from dbt.adapters.silt.engine.commands.spark.session_settings import configure, quotes_for
from dbt.adapters.silt.engine.commands.spark.shared_storage import SharedStorage
from dbt.adapters.silt.engine.commands.target import Outcome, WriteSettings, never
from dbt.adapters.silt.engine.kernel.clock import Clock, SystemClock
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, RelationExistsError
from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.progress import Progress, silent
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings, storages
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from dbt.adapters.silt.engine.sql.ast import ConstraintKind, CreateTable, Query, Statement, is_path
from dbt.adapters.silt.engine.sql.grammar.parse import parse
from dbt.adapters.silt.engine.sql.grammar.session import immediate
from dbt.adapters.silt.engine.sql.query.quotes import as_read
from dbt.adapters.silt.engine.statements import failures
from dbt.adapters.silt.engine.statements.conflict_retry import ConflictRetry, RetryQueue
from dbt.adapters.silt.engine.statements.execute import dataframe_write, views
from dbt.adapters.silt.engine.statements.execute.affected_tables import Written, affected_tables, names_in_use
from dbt.adapters.silt.engine.statements.resolve import client_statements
from dbt.adapters.silt.engine.statements.resolve.expansion import SqlFragment
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace
from dbt.adapters.silt.engine.statements.resolve.reads import ReadHistory, Resolved
from dbt.adapters.silt.engine.statements.resolve.resolve import Resolver
from dbt.adapters.silt.engine.statements.resolve.snapshot_views import SnapshotViews
from dbt.adapters.silt.engine.statements.resolve.stored_code import Allowed
from dbt.adapters.silt.engine.statements.steps import on_table
from dbt.adapters.silt.engine.statements.steps.audits import SETTING as AUDITS
from dbt.adapters.silt.engine.statements.steps.audits import TwoTablesError, audits_of
from dbt.adapters.silt.engine.statements.steps.context import Context, Result
from dbt.adapters.silt.engine.statements.transactions import work_ids
from dbt.adapters.silt.engine.statements.transactions.session_transaction import SessionTransaction

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["Result", "Warehouse", "WarehouseSettings"]

_CHANGED_SESSION = "a statement before it changed its session"
_SKIPPED = "TRANSACTION"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True)
class WarehouseSettings:
    """The settings of a warehouse.

    Attributes:
        isolation_level: level of every commit; None uses each table's own.
        max_commit_attempts: how often a commit is tried against winners with which it does not conflict.
        statement_attempts: how often a statement is run in total if it loses conflicts.
        clock: source of time, ids and randomness.
        is_forgotten_on_replace: selects the transaction identifiers to forget when a whole table is replaced, by
            default nothing; the rest is kept until the table is dropped.
        python_functions: whether functions in Python, which are code in the warehouse, may be created and called.
        stored_code: whether views and SQL functions of the warehouse may run scripts, call Java methods and read
            through any provider.
        external_paths: whether tables may name files outside their own folders and the warehouse, and views and SQL
            functions may name files outside all tables.
        file_locations: without `external_paths`, the files and folders that views and SQL functions may read, spelled
            as in their SQL.
        log_skips: whether skipped writes are named in the log of the package, `dbt.adapters.silt`.
        progress: callback for the progress of OPTIMIZE, VACUUM, CONVERT TO DELTA and deep clones, with the counted
            things, the number of finished things, and their total or None.

    Example:
        >>> once = WarehouseSettings(statement_attempts=1, isolation_level=IsolationLevel.SNAPSHOT)
        >>> warehouse = Warehouse(spark, folder, settings=once)
    """

    isolation_level: IsolationLevel | None = None
    max_commit_attempts: int = 20
    statement_attempts: int = 5
    clock: Clock = field(default_factory=SystemClock)
    is_forgotten_on_replace: Callable[[str], bool] = never
    python_functions: bool = False
    stored_code: bool = False
    external_paths: bool = False
    file_locations: Container[str] = ()
    log_skips: bool = True
    progress: Progress = silent


@dataclass(frozen=True)
class _Shared:
    """The parts of a warehouse that its sessions share."""

    databases: OpenDatabases
    storage: SharedStorage
    retry_queue: RetryQueue = field(default_factory=RetryQueue)


@dataclass(frozen=True)
class _Session:
    """The state of a warehouse in a session.

    Attributes:
        namespace: the names; `use` changes the current database and schema.
        transaction: the transaction of the session, or the branch of its run.
        snapshot_views: the session views over pinned snapshots.
        read_history: the reads of earlier statements that belong to the same unit of work, if any.
        changes: the statements that have changed the session.
        owner: the program that has stored the statements, for `for_stored`; or the client that sends them.
        is_client: whether a client sends the statements, for `for_client`.
    """

    namespace: Namespace
    transaction: SessionTransaction
    snapshot_views: SnapshotViews
    read_history: ReadHistory | None = None
    changes: list[Statement] = field(default_factory=list)
    owner: str | None = None
    is_client: bool = False


class Warehouse:
    """Tables and views in a folder or an object store, for a Spark session.

    Args:
        spark: session that runs the work; settings on which correctness depends are set in it.
        location: folder of the warehouse, created with the first schema; or a URL, `s3://bucket/prefix`,
            `abfss://container@account.dfs.core.windows.net/prefix` or `gs://bucket/prefix`.
        database: name of the warehouse in three-part names.
        schema: schema of names without a schema; created if it is missing and the folder is writable.
        databases: more warehouses: name -> location, as a string or with settings of its storage.
        settings: settings of the warehouse.
        storage: settings of object stores for databases without their own.

    Raises:
        InvalidSettingError: if a location is of an unsupported kind, the session has a conflicting setting, or its
            Spark cannot reach a location.
        StorageError: if the folder does not exist and cannot be created, or cannot be read. A read-only folder opens;
            the first statement that would write is refused.

    Example:
        >>> warehouse = Warehouse(spark, folder)
        >>> done = warehouse.sql("create table orders (id bigint not null, amount decimal(12, 2))")
        >>> done = warehouse.sql("insert into orders values (1, 9.50), (2, 3.00)")
        >>> warehouse.table("orders").agg({"amount": "sum"}).first()[0]
        Decimal('12.50')
    """

    def __init__(
        self,
        spark: SparkSession,
        location: str,
        *,
        database: str = "silt",
        schema: str = "main",
        databases: Mapping[str, str | Location] | None = None,
        settings: WarehouseSettings | None = None,
        storage: StorageSettings | None = None,
    ) -> None:
        settings = settings or WarehouseSettings()
        places = {database: location, **(databases or {})}
        locations = {name: each.url if isinstance(each, Location) else each for name, each in places.items()}
        own = {name: each.storage for name, each in places.items() if isinstance(each, Location) and each.storage}
        used = storages(locations, storage, own)
        opened = open_databases(locations, used, settings.external_paths, settings.clock)
        self._build(*_first_session(spark, opened, (database, schema)), settings)

    @classmethod
    def over(
        cls, spark: SparkSession, databases: OpenDatabases, current: tuple[str, str], settings: WarehouseSettings
    ) -> Warehouse:
        """Returns a warehouse over databases that this process has already opened, and shares their caches.

        Args:
            current: the default database and schema, for names without them.

        Raises:
            InvalidSettingError, StorageError: as in the constructor.
        """
        made = cls.__new__(cls)
        made._build(*_first_session(spark, databases, current), settings)
        return made

    def _build(self, shared: _Shared, session: _Session, settings: WarehouseSettings) -> None:
        """Sets all attributes: every warehouse is built here."""
        self._shared, self._session, self.settings = shared, session, settings

    def _with(self, session: _Session, settings: WarehouseSettings | None = None) -> Warehouse:
        """Returns the same warehouse with the state of another session."""
        made = type(self).__new__(type(self))
        made._build(self._shared, session, settings or self.settings)
        return made

    @property
    def spark(self) -> SparkSession:
        """The session that runs the work."""
        return self._session.namespace.spark

    def for_session(
        self,
        spark: SparkSession,
        one_cut: bool = False,
        progress: Progress | None = None,
        branch: Branch | None = None,
        is_read_only: bool = False,
    ) -> Warehouse:
        """Returns the same warehouse, with its caches, for another session, such as that of a stream's micro-batch.

        Args:
            one_cut: whether the following statements belong together: a write to a table then depends on the rows of it
                that earlier queries read, and another writer's commit in between is a conflict.
            progress: callback that replaces the callback of the settings.
            branch: the branch of the current database on which all statements work; by default the branch of this
                session's run, if any.
            is_read_only: whether the statements can only read the branch, so the run need not know of this session.

        Example:
            >>> warehouse.for_session(spark.newSession()).table("orders").count()
            2
        """
        transaction = self._session.transaction.for_another_session()
        if branch is not None:
            transaction.join(self._session.namespace.database, branch, is_read_only)
        settings = self.settings if progress is None else replace(self.settings, progress=progress)
        return self._with(self._seen_by(spark, transaction, ReadHistory() if one_cut else None), settings)

    def for_clone(self, clone: Callable[[SparkSession], SparkSession]) -> Warehouse:
        """Returns the same warehouse for a clone of its session, with the same schema, temporary views and branch.

        Args:
            clone: clones a session of Spark.

        Raises:
            InvalidStatementError: if a transaction is open.
        """
        if self.is_in_transaction:
            raise InvalidStatementError(
                "a transaction is open, and the clone of a session cannot share it",
                remedy="Run `commit` or `rollback` first",
            )
        here, transaction = self._session, self._session.transaction.for_another_session()
        spark = clone(self.spark)
        names = replace(here.namespace, spark=spark, catalog=transaction.catalog)
        names.temporary = dict(here.namespace.temporary)
        views, changes = here.snapshot_views.of_clone(spark), list(here.changes)
        made = replace(here, namespace=names, transaction=transaction, snapshot_views=views, changes=changes)
        return self._with(made)

    def for_stored(self, owner: str) -> Warehouse:
        """Returns the same warehouse for statements that are stored in it, where another user may have written them.

        They have the permissions of a stored view, and each must change the rows or properties of a table of the
        warehouse, or maintain it; otherwise StoredCodeError or ExternalPathError is raised.

        Args:
            owner: the program that has stored them, for messages.
        """
        return self._with(replace(self._session, owner=owner))

    def for_client(self, client: str) -> Warehouse:
        """Returns the same warehouse for the statements of a client that is not the user of this process.

        They may be of any kind and change any table of the warehouse, but have the permissions of a stored view: they
        run no code and name no files, unless the settings allow it; otherwise StoredCodeError or ExternalPathError is
        raised.

        Args:
            client: the words for it in messages, such as "the statement of a client".
        """
        return self._with(replace(self._session, owner=client, is_client=True))

    @property
    def current(self) -> tuple[str, str]:
        """The current database and schema of the session."""
        return self._session.namespace.database, self._session.namespace.schema

    @property
    def catalog(self) -> Catalog:
        """The relations of the warehouse, or of the open transaction, without Spark."""
        return self._session.transaction.catalog

    def sql(self, text: str, txn: tuple[str, int] | None = None, *, user_metadata: str | None = None) -> DataFrame:
        """Runs a statement, and returns a query's rows, or a row with the results of a change.

        Args:
            text: the statement.
            txn: application id and version: the change is applied unless the table holds this or a later version of
                that application id, so repeating the call, after any crash, applies it once.
            user_metadata: the caller's note on the commit, which `describe history` shows; None uses the session's
                setting `spark.databricks.delta.commitInfo.userMetadata`, if it is set.

        Raises:
            SiltError: see `kernel.errors`; nothing is applied unless the error states otherwise. It is also raised if
                computing the rows fails: in `collect()` and all other methods of the DataFrame and of DataFrames
                derived from it. An incorrect call of such a method raises Python's TypeError, ValueError or
                AttributeError.

        Example:
            >>> delete = "delete from orders where id = 1"
            >>> warehouse.sql(delete, txn=("clean-up", 1)).first().num_deleted_rows
            1
            >>> warehouse.sql(delete, txn=("clean-up", 1)).first().skipped
            True
        """
        return self._mapping(self.execute(text, txn, user_metadata=user_metadata).rows(self.spark))

    @errors.mapped()
    def write(
        self,
        df: DataFrame,
        table: str,
        *,
        mode: str = "append",
        txn: tuple[str, int] | None = None,
        commit_info: Mapping[str, Any] | None = None,
        **options: Unpack[dataframe_write.WriteOptions],
    ) -> Outcome:
        """Writes the rows of a DataFrame into a table in a single commit; columns are matched by name.

        Args:
            df: rows, of any session.
            table: SQL name of the table; created if it does not exist.
            mode: effect on an existing table, as in Spark's DataFrameWriter: `append`, `overwrite`, `error` (or
                `errorifexists`) or `ignore`.
            txn: as in `sql`. An application id identifies one write: a second write of a batch to the same table needs
                another id.
            commit_info: further fields of the commit's `commitInfo`.
            options: see WriteOptions.

        Raises:
            InvalidArgumentError: if the rows are a stream's, or the mode, an option or `txn` is invalid.
            InvalidNameError: if the table would not be in the warehouse.
            ColumnNotFoundError, TypeMismatchError: if the columns do not match the table's.
            SiltError: see `kernel.errors`; nothing is applied unless the error states otherwise.

        Example:
            >>> new = spark.sql("select 3L as id, 1.25 as amount")
            >>> warehouse.write(new, "orders", txn=("load", 1)).rows_inserted
            1
            >>> warehouse.write(new, "orders", txn=("load", 1)).skipped
            True
        """
        frames.check_frame(df)
        view = f"__silt_rows_{self.settings.clock.new_id()}"
        if "replace_where" in options and isinstance(options["replace_where"], str):
            options["replace_where"] = self._read(options["replace_where"])
        statement = dataframe_write.statement(self._read(table), view, mode, options)
        settings = self._write_settings(statement, txn, options.get("user_metadata"))
        settings = replace(settings, commit=replace(settings.commit, commit_info=dict(commit_info or {})))
        same = df.sparkSession is self.spark
        session = self._session
        house = self if same else self._with(self._seen_by(df.sparkSession, session.transaction, session.read_history))
        with frames.frame_view(df, view):
            outcome = house._run(statement, settings).outcome
        assert outcome is not None
        return outcome

    def transaction_version(self, table: str, app_id: str) -> int | None:
        """Returns the last version that an application committed to a table, or None if it or the table does not exist.

        A program whose `txn` version is its position, such as the last offset read, can resume from the returned
        version: a commit stores the position together with the rows.

        Args:
            table: SQL name of the table.

        Example:
            >>> outcome = warehouse.write(spark.sql("select 3L as id"), "orders", txn=("load", 41))
            >>> warehouse.transaction_version("orders", "load")
            41
        """
        return dataframe_write.recorded_version(self._statement_namespace(), self._read(table), app_id)

    @contextlib.contextmanager
    def transaction(self, txn: tuple[str, int] | None = None) -> Iterator[Warehouse]:
        """Returns a context manager for a transaction: all its statements take effect at one moment, or none does.

        Its value is the same warehouse, as the transaction sees it: tables as of the moment when the transaction first
        uses them, with its own changes. The end of the block commits; an exception rolls back. The statements change
        rows and columns of existing tables of the current database; other changes are refused.

        Args:
            txn: application id and version that each changed table records: a statement whose table has recorded this
                or a later version before the transaction is skipped.

        Raises:
            InvalidStatementError: if this warehouse is in a transaction.
            ConcurrentModificationError: at the end, if another writer has changed rows that the transaction has read or
                changed; nothing is applied. The block can be run again.
            CommitStateUnknownError: at the end, if it is not known whether everything was applied, or nothing.
            ReadOnlyStorageError: if the warehouse is read-only.

        Example:
            >>> with warehouse.transaction() as together:
            ...     done = together.sql("insert into orders values (7, 1.00)")
            ...     done = together.sql("update orders set amount = 2 where id = 7")
            >>> warehouse.sql("select amount from orders where id = 7").first()[0]
            Decimal('2.00')
        """
        here = self._session.namespace
        transaction = self._session.transaction.begun(here.database, work_ids.checked(txn))
        session = self._seen_by(self.spark, transaction, self._session.read_history)
        session.namespace.temporary = here.temporary
        within = self._with(replace(session, changes=self._session.changes))
        try:
            yield within
        except BaseException:
            within.roll_back()
            raise
        if transaction.is_open:
            transaction.commit()

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction has begun and has not ended."""
        return self._session.transaction.ends_with_session

    def roll_back(self) -> bool:
        """Drops the changes of the open transaction, if any; returns whether a transaction was open."""
        was_open = self._session.transaction.ends_with_session
        if was_open:
            self._session.transaction.rollback()
        return was_open

    def join(self, database: str, branch: Branch | None) -> None:
        """Lets all later statements of this session work on the branch of a run, or outside of it again.

        Args:
            database: the database of the branch.
            branch: None to leave the branch. In the session no transaction is open.
        """
        if branch is None:
            self._session.transaction.leave()
        else:
            self._session.transaction.join(database, branch)

    def query(self, text: str, parameters: dict[str, Any] | list[Any]) -> DataFrame:
        """Returns the rows of a query with named (`:name`) or positional (`?`) parameters, as in `SparkSession.sql`.

        Example:
            >>> warehouse.query("select id from orders where amount > :least", {"least": 5}).collect()
            [Row(id=1)]
        """
        with failures.mapped(self._session.namespace):
            resolved = self._context(WriteSettings()).resolver.query(self._read(text))
            return self._mapping(self.spark.sql(resolved.texts[0], parameters))

    def table(self, name: str, version: int | None = None) -> DataFrame:
        """Returns the rows of a table or view, by its SQL name, at the given or the newest version.

        Example:
            >>> warehouse.table("orders", version=0).count()
            0
        """
        travel = "" if version is None else f" version as of {int(version)}"
        return self.sql(f"select * from {name}{travel}")

    def tables(self, names: Sequence[str]) -> list[DataFrame]:
        """Returns the rows of several tables and views, by their SQL names, as of the same moment."""
        return self.resolved([f"select * from {name}" for name in names])[0]

    def resolved(self, queries: Sequence[str], expressions: Sequence[str] = ()) -> tuple[list[DataFrame], list[str]]:
        """Returns the rows of queries, and expressions whose subqueries name session views, as of the same moment."""
        with failures.mapped(self._session.namespace):
            context = self._context(WriteSettings())
            texts = [SqlFragment(self._read(text)) for text in queries]
            # An expression is about a relation whose name is not known.
            texts += [SqlFragment(self._read(text), {("__silt_outer",): "__silt_outer"}) for text in expressions]
            resolved = context.resolver.resolve(texts)
            frames_of = [self._mapping(context.frame(resolved, at)) for at in range(len(queries))]
            return frames_of, list(resolved.texts[len(queries) :])

    def still_reads(self, text: str) -> bool:
        """Returns whether Spark still knows the views and functions that a text of a DataFrame of `resolved` names."""
        return self._session.snapshot_views.holds(text)

    @property
    def temporary_views(self) -> tuple[str, ...]:
        """The temporary views of the session over tables of the warehouse, which Spark does not list."""
        return tuple(self._session.namespace.temporary)

    def put_temporary_view(self, df: DataFrame, name: str, *, replace: bool) -> None:
        """Creates a temporary view of a DataFrame of this session.

        Args:
            name: its name, without quotes.
            replace: whether it replaces a view of that name; otherwise a failure of Spark is raised if it exists.
        """
        if replace:
            self._session.namespace.temporary.pop(name.lower(), None)
        elif name.lower() in self._session.namespace.temporary:
            raise RelationExistsError("a temporary view with that name already exists", table=name)
        with failures.mapped(self._session.namespace):
            (df.createOrReplaceTempView if replace else df.createTempView)(quote(name))

    def drop_temporary_view(self, name: str) -> bool:
        """Drops a temporary view of the session, by its name without quotes; returns whether it existed."""
        return views.drop_temporary(self._context(WriteSettings()), (name,))

    def changes(
        self, table: str, *, after: int | None = None, until: int | None = None, key: Sequence[str] = ()
    ) -> DataFrame:
        """Returns the rows of a table that changed, with `_change_type`, `_commit_version` and `_commit_timestamp`.

        The table need not record its changes (`delta.enableChangeDataFeed`): otherwise the log and the rows of the
        changed files tell them.

        Args:
            table: SQL name of the table.
            after: the version after which the changes begin; by default, all rows are inserts of the last version.
            until: the last version, by default the newest.
            key: columns that identify a row; then only the newest row of each changed key is returned, with the change
                type `upsert`, or `delete` if the key is gone.

        Raises:
            ChangesMissingError: if the needed commits or files no longer exist, or the columns of a version cannot be
                read together with the columns of the last version.
            UnsupportedStatementError: if it is a view.
            VersionNotFoundError: if a version does not exist yet.
            DataFileMissingError: if VACUUM has deleted a data file that is needed, when the rows are computed.

        Example:
            >>> warehouse.changes("orders", after=0).select("_change_type").distinct().collect()
            [Row(_change_type='insert')]
        """
        options = [
            f"{name} => {int(value)}" for name, value in (("after", after), ("until", until)) if value is not None
        ]
        if key:
            options += ["as => 'upserts'", f"key => {string_literal(', '.join(map(quote, key)))}"]
        return self.sql(f"select * from silt_changes({', '.join([string_literal(table), *options])})")

    @errors.mapped()
    def execute(
        self,
        statement: str | Statement,
        txn: tuple[str, int] | None = None,
        *,
        commit_info: Mapping[str, Any] | None = None,
        isolation_level: IsolationLevel | None = None,
        user_metadata: str | None = None,
        replace_tables: bool = False,
        build: Build | None = None,
        audits: Audits | None = None,
    ) -> Result:
        """Runs a statement as `sql` does, and returns a query's rows, not yet computed, or the outcome of a change.

        Args:
            statement: SQL, or the result of `parsed`.
            commit_info: further fields of the commit's `commitInfo`.
            isolation_level: level of this statement's commit; None uses the warehouse's setting, then the table's.
            user_metadata: see `sql`.
            replace_tables: whether CREATE OR REPLACE VIEW may replace a table, which deletes its rows.
            build: the build whose facts the commit records.
            audits: the audits that the commit must pass.

        Example:
            >>> outcome = warehouse.execute("update orders set amount = 0 where id = 2").outcome
            >>> outcome.operation, outcome.version, outcome.rows_updated
            ('UPDATE', 2, 1)
        """
        parsed = self.parsed(statement) if isinstance(statement, str) else statement
        if self._session.owner is not None:
            check = client_statements.check if self._session.is_client else Allowed.check_statement
            check(self._allowed, parsed, self._statement_namespace(), self._session.owner)
        settings = self._write_settings(parsed, txn, user_metadata, audits)
        commit = replace(
            settings.commit,
            isolation_level=isolation_level or self.settings.isolation_level,
            commit_info=dict(commit_info or {}),
        )
        if build is not None and self._session.changes:
            build = replace(build, unknown=(*build.unknown, _CHANGED_SESSION))
        if build is None and isinstance(parsed, CreateTable):
            now = self.settings.clock.now_ms()
            build = session_reuse.session_build(self._statement_namespace(), parsed, self._session.changes, now)
        result = self._run(parsed, replace(settings, commit=commit, replace_tables=replace_tables, build=build))
        rows = result.dataframe
        return result if rows is None else replace(result, dataframe=self._mapping(rows, parsed))

    def parsed(self, text: str) -> Statement:
        """Parses a statement, with quotes interpreted by the session's settings.

        If it is EXECUTE IMMEDIATE and not stored, evaluates the expression and parses the resulting statement.

        Raises:
            StatementSyntaxError, UnsupportedStatementError: as in `sql`.
            StoredCodeError, ExternalPathError: if the expression of a client would run code or read files.
            InvalidStatementError: if the expression of EXECUTE IMMEDIATE is not a string.
        """
        text = self._read(text)
        expression = immediate(text) if self._session.owner is None or self._session.is_client else None
        return parse(text if expression is None else self._read(self._text_of(expression)))

    def written(self, statement: Statement) -> Written | None:
        """Returns the warehouse's table that a statement would change, or None, without running the statement.

        Raises:
            InvalidNameError: if the statement would raise it.
        """
        name = statement.changed_table
        if name is None or statement.effect is None:
            return None
        if is_path(name):
            return Written(None, statement.effect)
        table = self._statement_namespace().name_in_warehouse(name)
        return None if table is None else Written(table, statement.effect)

    def affected_tables(self, statement: Statement) -> tuple[RelationName, ...]:
        """Returns the warehouse's tables that a statement would create, change, rename or drop, without running it.

        Raises:
            InvalidNameError: if the statement would raise it.
        """
        return affected_tables(self._statement_namespace(), statement)

    def names_in_use(self, statement: Statement) -> tuple[RelationName, ...]:
        """Returns the warehouse's names that a statement would start or stop using, without running it.

        Raises:
            InvalidNameError: if the statement would raise it.
        """
        return names_in_use(self._statement_namespace(), statement)

    def schema_of(self, query: str) -> StructType:
        """Returns the schema of a query, without running it.

        Example:
            >>> warehouse.schema_of("select id from orders").simpleString()
            'struct<id:bigint>'
        """
        with failures.mapped(self._session.namespace, Query(text=query)):
            context = self._context(WriteSettings())
            alone = replace(context, resolver=replace(context.resolver, read_history=None))
            return alone.dataframe(self._read(query)).schema

    def facts(self, build: Build) -> BuildFacts:
        """Returns the facts that a build from the present versions would record; nothing is computed or written.

        Args:
            build: the build, with its query, if it has one.

        Raises:
            SiltError: if the query cannot be resolved.
        """
        context = self._context(WriteSettings())
        resolved = Resolved((), ()) if build.query is None else context.resolver.query(self._read(build.query))
        found = facts_of_query(build, resolved, context.resolver.time_zone)
        return replace(found, portable=on_table.portable_of(context, build))

    def snapshot(self, name: RelationName) -> Snapshot:
        """Returns the newest snapshot of a table of the warehouse.

        Raises:
            RelationNotFoundError: if the table does not exist.
        """
        return self.catalog.table(name).snapshot()

    def forget_reads(self, name: RelationName) -> None:
        """Forgets the reads of a table by earlier statements (see `for_session`)."""
        if self._session.read_history is not None:
            self._session.read_history.forget(self.catalog.table(name))

    def _seen_by(
        self, spark: SparkSession, transaction: SessionTransaction, read_history: ReadHistory | None
    ) -> _Session:
        """Returns the state of another session, with the same current database and schema, and the same owner."""
        here = self._session.namespace
        namespace = Namespace(spark, transaction.catalog, here.database, here.schema)
        made = _session(self._shared, namespace, transaction, read_history)
        return replace(made, owner=self._session.owner, is_client=self._session.is_client)

    def _read(self, text: str) -> str:
        """Normalizes the quotes of SQL; other values than strings are returned unchanged and rejected later."""
        return as_read(text, quotes_for(self.spark, text)) if isinstance(text, str) else text

    def _mapping(self, rows: DataFrame, statement: Statement | None = None) -> DataFrame:
        """Returns the rows with mapped errors, which name the table of an unreadable file."""
        return frames.mapping(rows, partial(failures.mapped_with_tables, self._session.namespace, statement))

    def _text_of(self, expression: str) -> str:
        with failures.mapped(self._session.namespace):
            value = self._context(WriteSettings()).dataframe(f"select ({expression}\n)").collect()[0][0]
        if not isinstance(value, str):
            found = "null" if value is None else repr(value)
            raise InvalidStatementError(f"EXECUTE IMMEDIATE needs a string, but {expression} is {found}")
        return value

    def _write_settings(
        self,
        statement: Statement,
        txn: tuple[str, int] | None,
        user_metadata: str | None,
        audits: Audits | None = None,
    ) -> WriteSettings:
        commit = CommitSettings(
            isolation_level=self.settings.isolation_level,
            max_attempts=self.settings.max_commit_attempts,
            user_metadata=self._user_metadata(statement) if user_metadata is None else user_metadata,
        )
        return WriteSettings(
            txn=work_ids.checked(txn),
            commit=commit,
            is_forgotten_on_replace=self.settings.is_forgotten_on_replace,
            log_skips=self.settings.log_skips,
            progress=self.settings.progress,
            audits=audits_of(statement, audits, self._setting(statement, AUDITS)),
        )

    def _user_metadata(self, statement: Statement) -> str | None:
        """Returns the session's note, or None for a query, which commits nothing."""
        return self._setting(statement, _USER_METADATA)

    def _setting(self, statement: Statement, name: str) -> str | None:
        """Returns a setting of the session, or None for a query, which saves the look-up."""
        return None if isinstance(statement, Query) else self.spark.conf.get(name, None)

    def _context(self, settings: WriteSettings) -> Context:
        session, namespace = self._session, self._statement_namespace()
        time_zone = self.spark.conf.get("spark.sql.session.timeZone") or "UTC"
        views, history = session.snapshot_views, session.read_history
        resolver = Resolver(namespace, views, time_zone, self._allowed, history, owner=session.owner)
        return Context(self.spark, namespace, resolver, settings, session.transaction)

    @property
    def _allowed(self) -> Allowed:
        given = self.settings
        return Allowed(given.python_functions, given.stored_code, given.external_paths, given.file_locations)

    def _statement_namespace(self) -> Namespace:
        """Returns the namespace for a statement, with the catalog's present names."""
        self._session.namespace.catalog = self.catalog.for_statement()
        return self._session.namespace

    def _run(self, statement: Statement, settings: WriteSettings) -> Result:
        retry = ConflictRetry(self.settings.statement_attempts, self.settings.clock, self._shared.retry_queue)
        if statement.changes_session:
            self._session.changes.append(statement)
        if not self._session.transaction.is_open:
            done = self._reused(statement, settings)
            if done is None and _changes_two_tables(statement, settings):
                return retry.run_all(lambda: self._run_in_transaction(statement, settings))
            if done is not None:
                return done
            try:
                return retry.run(statement, settings, self._context)
            except TwoTablesError:
                return retry.run_all(lambda: self._run_in_transaction(statement, settings))
        self._session.transaction.check_joined(statement)
        log = self._session.transaction.check(statement, self._statement_namespace())
        if log is not None and self._session.transaction.holds(log):
            return Result(outcome=Outcome(_SKIPPED, log.name, None, skipped=True))
        result = self._reused(statement, settings) or retry.run(statement, settings, self._context)
        if statement.changes_something:
            self._session.transaction.check_joined(statement, is_done=True)
        # Its version on the branch is not the version that the table will have.
        return result if result.outcome is None else replace(result, outcome=replace(result.outcome, version=None))

    def _run_in_transaction(self, statement: Statement, settings: WriteSettings) -> Result:
        """Runs a statement in a transaction of its own, so that its two tables change together."""
        assert statement.changed_table is not None
        here = self._statement_namespace()
        name = None if is_path(statement.changed_table) else here.name_in_warehouse(statement.changed_table)
        transaction = self._session.transaction.of_statement(here.database if name is None else name.database)
        session = self._seen_by(self.spark, transaction, self._session.read_history)
        session.namespace.temporary = here.temporary
        within = self._with(replace(session, changes=self._session.changes))
        try:
            result = within._run(statement, settings)
        except BaseException:
            within.roll_back()
            raise
        versions = transaction.commit()
        outcome = result.outcome
        if outcome is None or outcome.skipped:
            return result
        return replace(result, outcome=replace(outcome, version=versions.get(outcome.table)))

    def _reused(self, statement: Statement, settings: WriteSettings) -> Result | None:
        if settings.build is None or (settings.txn or self._session.transaction.txn) is not None:
            return None
        done = session_reuse.reused(self._context(settings).resolver, statement, settings.build)
        return None if done is None else Result(outcome=done)


def _changes_two_tables(statement: Statement, settings: WriteSettings) -> bool:
    """Returns whether a statement changes the quarantine too, or the table that an enforced foreign key references."""
    if settings.audits is not None and settings.audits.on_failure is OnFailure.QUARANTINE:
        return True
    constraints = statement.constraints if isinstance(statement, CreateTable) else ()
    return any(each.enforced and each.kind is ConstraintKind.FOREIGN_KEY for each in constraints)


def _first_session(spark: SparkSession, databases: OpenDatabases, current: tuple[str, str]) -> tuple[_Shared, _Session]:
    """Opens the current schema, and returns the shared parts and the state of the first session."""
    check_locations(databases.locations)
    databases.catalog.open_schema(*current)
    shared = _Shared(databases, SharedStorage(tuple(databases.stores.values())))
    namespace = Namespace(spark, databases.catalog, *current)
    return shared, _session(shared, namespace, SessionTransaction(databases.catalog), None)


@errors.mapped()
def _session(
    shared: _Shared, namespace: Namespace, transaction: SessionTransaction, read_history: ReadHistory | None
) -> _Session:
    """Configures a Spark session, and returns the state of the warehouse in it."""
    configure(namespace.spark)
    hadoop_storage.configure(namespace.spark, shared.databases.locations, shared.databases.storages)
    shared.storage.check(namespace.spark)
    return _Session(namespace, transaction, SnapshotViews(namespace.spark), read_history)

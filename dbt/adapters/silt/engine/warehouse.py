"""The front door: SQL and tables of a warehouse, from any PySpark program.

    from dbt.adapters.silt.engine import Warehouse

    warehouse = Warehouse(spark, "/data/warehouse")
    warehouse.sql("create table main.orders (id bigint not null, amount decimal(12, 2))")
    warehouse.write(df, "main.orders", txn=("load", 1))
    warehouse.table("main.orders").show()

Statements on tables of the warehouse go through the engine's commit protocol; everything else goes to Spark as it is.

A write with a `txn` takes place once, however often the program is run again. A job keeps its position as the version,

    done = warehouse.transaction_version("main.orders", "orders-job")
    warehouse.write(read(after=done), "main.orders", txn=("orders-job", last_offset))

and a stream that writes several tables, MERGE included, by the id of its batch:

    def apply(batch, batch_id):
        warehouse = Warehouse(batch.sparkSession, "/data/warehouse")
        batch.createOrReplaceTempView("batch")
        warehouse.write(batch, "main.events", txn=("orders-stream", batch_id))
        warehouse.sql("merge into main.orders using batch ...", txn=("orders-stream", batch_id))

    stream.writeStream.foreachBatch(apply).option("checkpointLocation", ...).start()

Each table records its own application ids. Skipped writes are named in the log of the package, `dbt.adapters.silt`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.locations import Location, check_locations
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.catalog.open_databases import OpenDatabases, open_databases
from dbt.adapters.silt.engine.commands.spark import errors, frame_source, frames
from dbt.adapters.silt.engine.commands.spark.required_settings import configure
from dbt.adapters.silt.engine.commands.spark.session_settings import quotes_for
from dbt.adapters.silt.engine.commands.spark.storage import hadoop_storage
from dbt.adapters.silt.engine.commands.spark.storage.shared_storage import SharedStorage
from dbt.adapters.silt.engine.commands.target import Outcome, WriteSettings, never
from dbt.adapters.silt.engine.kernel.clock import Clock, SystemClock
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.progress import Progress, silent
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings, storages
from dbt.adapters.silt.engine.kernel.table.property_values import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from dbt.adapters.silt.engine.sql.ast import Query, Statement, is_path
from dbt.adapters.silt.engine.sql.grammar.immediate import immediate
from dbt.adapters.silt.engine.sql.grammar.parse import parse
from dbt.adapters.silt.engine.sql.query.quotes import as_read
from dbt.adapters.silt.engine.statements import damaged_tables, missing_functions
from dbt.adapters.silt.engine.statements.conflict_retry import ConflictRetry
from dbt.adapters.silt.engine.statements.execute import dataframe_write
from dbt.adapters.silt.engine.statements.execute.affected_tables import affected_tables, names_in_use
from dbt.adapters.silt.engine.statements.execute.written import Written
from dbt.adapters.silt.engine.statements.resolve.expansion import SqlFragment
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace
from dbt.adapters.silt.engine.statements.resolve.reads import ReadHistory
from dbt.adapters.silt.engine.statements.resolve.resolve import Resolver
from dbt.adapters.silt.engine.statements.resolve.snapshot_views import SnapshotViews
from dbt.adapters.silt.engine.statements.resolve.stored_code import Allowed
from dbt.adapters.silt.engine.statements.retry_queue import RetryQueue
from dbt.adapters.silt.engine.statements.steps import skips
from dbt.adapters.silt.engine.statements.steps.context import Context, Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Result", "Warehouse", "WarehouseSettings"]

_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True)
class WarehouseSettings:
    """How a warehouse commits.

    Attributes:
        isolation_level: of every commit; None takes each table's own.
        max_commit_attempts: how often one commit is tried against winners that it does not conflict with.
        statement_attempts: how often a statement that lost a conflict is run, the first time included.
        clock: time, ids and chance.
        is_forgotten_on_replace: the transaction identifiers that are forgotten when a whole table is replaced; none by
            default. The others are remembered until the table is dropped.
        python_functions: whether functions in Python, which are code in the warehouse, may be made and called.
        stored_code: whether views and SQL functions of the warehouse may run scripts, call methods of Java and read by
            any provider.
        external_paths: whether tables may name files that are neither in their own folders nor in the warehouse, and
            views and SQL functions files that are in no table.
        file_locations: else the files and folders that views and SQL functions may read, each as their texts name it.
        log_skips: whether a skipped write is named in the log of the package, `dbt.adapters.silt`.
        progress: is called with how far OPTIMIZE, VACUUM, CONVERT TO DELTA and deep clones are: what is counted, how
            many of them are done, and of how many, or None.

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


class Warehouse:
    """Tables and views in a folder or an object store, seen by one Spark session.

    Args:
        spark: the session that runs the work; settings that correctness rests on are set in it.
        location: the folder of the warehouse, made when the first schema is; or a URL, `s3://bucket/prefix`,
            `abfss://container@account.dfs.core.windows.net/prefix` or `gs://bucket/prefix`.
        database: the name of the warehouse in three-part names.
        schema: where a name without a schema is looked up; made when it is absent and the folder can be written.
        databases: more warehouses by name: name -> location, as a text or with settings of its storage.
        settings: how it commits.
        storage: how object stores are reached where a database has no settings of its own.

    Raises:
        InvalidSettingError: a location is of a kind that is not supported, the session has a conflicting setting, or
            its Spark runs where it does not see a location.
        StorageError: the folder is not there and cannot be made, or cannot be read. One that can only be read opens;
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
        self._set_up(spark, opened, (database, schema), settings)

    @classmethod
    def over(
        cls, spark: SparkSession, databases: OpenDatabases, current: tuple[str, str], settings: WarehouseSettings
    ) -> Warehouse:
        """A warehouse of databases that this process has opened already, whose caches it shares.

        Args:
            current: the database and the schema of names without them.

        Raises:
            InvalidSettingError, StorageError: as the constructor does.
        """
        made = cls.__new__(cls)
        made._set_up(spark, databases, current, settings)
        return made

    def _set_up(
        self, spark: SparkSession, databases: OpenDatabases, current: tuple[str, str], settings: WarehouseSettings
    ) -> None:
        self.settings, self._databases = settings, databases
        check_locations(databases.locations)
        databases.catalog.open_schema(*current)
        self._storage = SharedStorage(tuple(databases.stores.values()))
        self._retry_queue = RetryQueue()
        self._open(Namespace(spark, databases.catalog, *current), None)

    def for_session(self, spark: SparkSession, one_cut: bool = False, progress: Progress | None = None) -> Warehouse:
        """The same warehouse, with its caches, seen by another session, such as that of a stream's micro-batch.

        Args:
            one_cut: whether the statements to come belong together: what a query reads of a table is then what a later
                write to that table rests on, and a commit of somebody else in between is a conflict.
            progress: in place of the one of the settings.

        Example:
            >>> warehouse.for_session(spark.newSession()).table("orders").count()
            2
        """
        seen = self._seen_by(spark, ReadHistory() if one_cut else None)
        if progress is not None:
            seen.settings = replace(self.settings, progress=progress)
        return seen

    @property
    def catalog(self) -> Catalog:
        """The relations of the warehouse, without Spark."""
        return self._databases.catalog

    def sql(self, text: str, txn: tuple[str, int] | None = None, *, user_metadata: str | None = None) -> DataFrame:
        """Runs one statement; a query's rows, or one row that says what a change did.

        Args:
            text: the statement.
            txn: application id and version: the change is applied unless the table holds this version, or a later
                one, of that application id; so the same call again, after any crash, applies it once.
            user_metadata: a note of the caller's on the commit, which `describe history` shows; None takes the
                session's setting `spark.databricks.delta.commitInfo.userMetadata`, if it is set.

        Raises:
            SiltError: see `kernel.errors`; nothing is applied unless the error says otherwise. What fails when the rows
                are computed raises it too: in `collect()` and all other methods of the DataFrame, and of those made of
                it. A wrong call of such a method raises Python's own TypeError, ValueError or AttributeError.

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
        **options: Unpack[dataframe_write.WriteOptions],
    ) -> Outcome:
        """Writes the rows of a DataFrame into a table, in one commit; columns are matched by name.

        Args:
            df: the rows; of any session.
            table: its SQL name; one that is not there is made.
            mode: what happens where it is there, as in Spark's DataFrameWriter: `append`, `overwrite`, `error` (or
                `errorifexists`) or `ignore`.
            txn: as of `sql`. An application id stands for one write: a second write of a batch to the same table has
                another.
            options: see WriteOptions.

        Raises:
            InvalidArgumentError: the rows are a stream's, or a mode, option or `txn` cannot be.
            InvalidNameError: the table would not be in the warehouse.
            ColumnNotFoundError, TypeMismatchError: the columns do not fit the table's.
            SiltError: see `kernel.errors`; nothing is applied unless the error says otherwise.

        Example:
            >>> new = spark.sql("select 3L as id, 1.25 as amount")
            >>> warehouse.write(new, "orders", txn=("load", 1)).rows_inserted
            1
            >>> warehouse.write(new, "orders", txn=("load", 1)).skipped
            True
        """
        frame_source.check(df)
        view = f"__silt_rows_{self.settings.clock.new_id()}"
        if "replace_where" in options and isinstance(options["replace_where"], str):
            options["replace_where"] = self._read(options["replace_where"])
        statement = dataframe_write.statement(self._read(table), view, mode, options)
        settings = self._write_settings(statement, txn, options.get("user_metadata"))
        same = df.sparkSession is self.spark
        house = self if same else self._seen_by(df.sparkSession, self._read_history)
        with frame_source.view(df, view):
            outcome = house._run(statement, settings).outcome
        assert outcome is not None
        return outcome

    def transaction_version(self, table: str, app_id: str) -> int | None:
        """The latest version that an application has committed to a table; None if it has none, or there is no table.

        A program that keeps its position as the version of its `txn`, such as the offset that it has read up to, asks
        here where to go on: the position and the rows are of one commit.

        Args:
            table: its SQL name.

        Example:
            >>> outcome = warehouse.write(spark.sql("select 3L as id"), "orders", txn=("load", 41))
            >>> warehouse.transaction_version("orders", "load")
            41
        """
        return dataframe_write.recorded_version(self._looking(), self._read(table), app_id)

    def query(self, text: str, parameters: dict[str, Any] | list[Any]) -> DataFrame:
        """The rows of a query with parameters, named (`:name`) or not (`?`), as `SparkSession.sql` takes them.

        Example:
            >>> warehouse.query("select id from orders where amount > :least", {"least": 5}).collect()
            [Row(id=1)]
        """
        with missing_functions.mapped(self._namespace):
            resolved = self._context(WriteSettings()).resolver.query(self._read(text))
            return self._mapping(self.spark.sql(resolved.texts[0], parameters))

    def table(self, name: str, version: int | None = None) -> DataFrame:
        """The rows of a table or view, by its SQL name, as of the newest version or of the one given.

        Example:
            >>> warehouse.table("orders", version=0).count()
            0
        """
        travel = "" if version is None else f" version as of {int(version)}"
        return self.sql(f"select * from {name}{travel}")

    def tables(self, names: Sequence[str]) -> list[DataFrame]:
        """The rows of several tables and views, by their SQL names, all as of one moment."""
        with missing_functions.mapped(self._namespace):
            resolver = self._context(WriteSettings()).resolver
            resolved = resolver.resolve([SqlFragment(self._read(f"select * from {name}")) for name in names])
            return [self._mapping(self.spark.sql(text)) for text in resolved.texts]

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
    ) -> Result:
        """As `sql`, giving the result as a value: a query's rows, not yet computed, or the outcome of a change.

        Args:
            statement: its text, or what `parsed` made of it.
            commit_info: further fields of the commit's `commitInfo`.
            isolation_level: of this statement's commit; None takes the warehouse's setting, then the table's.
            user_metadata: see `sql`.
            replace_tables: whether CREATE OR REPLACE VIEW may replace a table, whose rows then are gone.

        Example:
            >>> outcome = warehouse.execute("update orders set amount = 0 where id = 2").outcome
            >>> outcome.operation, outcome.version, outcome.rows_updated
            ('UPDATE', 2, 1)
        """
        parsed = self.parsed(statement) if isinstance(statement, str) else statement
        settings = self._write_settings(parsed, txn, user_metadata)
        commit = replace(
            settings.commit,
            isolation_level=isolation_level or self.settings.isolation_level,
            commit_info=dict(commit_info or {}),
        )
        result = self._run(parsed, replace(settings, commit=commit, replace_tables=replace_tables))
        return result if result.dataframe is None else replace(result, dataframe=self._mapping(result.dataframe))

    def parsed(self, text: str) -> Statement:
        """The statement in a text, whose quotes are read as the session's settings say.

        Of EXECUTE IMMEDIATE it is the statement in the value of its expression, which is computed for that.

        Raises:
            StatementSyntaxError, UnsupportedStatementError: as of `sql`.
            InvalidStatementError: EXECUTE IMMEDIATE is given no text.
        """
        text = self._read(text)
        expression = immediate(text)
        return parse(text if expression is None else self._read(self._text_of(expression)))

    def written(self, statement: Statement) -> Written | None:
        """The table of the warehouse that a statement would change; None where it would change none. Runs nothing.

        Raises:
            InvalidNameError: as the statement would.
        """
        name = statement.changed_table
        if name is None or statement.effect is None:
            return None
        if is_path(name):
            return Written(None, statement.effect)
        table = self._looking().name_in_warehouse(name)
        return None if table is None else Written(table, statement.effect)

    def affected_tables(self, statement: Statement) -> tuple[RelationName, ...]:
        """The tables of the warehouse that a statement would make, change, rename or drop. Runs nothing.

        Raises:
            InvalidNameError: as the statement would.
        """
        return affected_tables(self._looking(), statement)

    def names_in_use(self, statement: Statement) -> tuple[RelationName, ...]:
        """The names of the warehouse that come into use by the statement, or go out of it. Runs nothing.

        Raises:
            InvalidNameError: as the statement would.
        """
        return names_in_use(self._looking(), statement)

    def schema_of(self, query: str) -> StructType:
        """The schema of a query, without running it.

        Example:
            >>> warehouse.schema_of("select id from orders").simpleString()
            'struct<id:bigint>'
        """
        with missing_functions.mapped(self._namespace):
            context = self._context(WriteSettings())
            alone = replace(context, resolver=replace(context.resolver, read_history=None))
            return alone.dataframe(self._read(query)).schema

    def snapshot(self, name: RelationName) -> Snapshot:
        """The newest snapshot of a table of the warehouse.

        Raises:
            RelationNotFoundError: there is no such table.
        """
        return self.catalog.table(name).snapshot()

    def forget_reads(self, name: RelationName) -> None:
        """Forgets what the statements so far have read of a table (see `for_session`)."""
        if self._read_history is not None:
            self._read_history.forget(self.catalog.table(name))

    @errors.mapped()
    def _open(self, namespace: Namespace, read_history: ReadHistory | None) -> None:
        """Sets what belongs to one session: what its names mean, its views, and what it has read."""
        configure(namespace.spark)
        hadoop_storage.configure(namespace.spark, self._databases.locations, self._databases.storages)
        self._storage.check(namespace.spark)
        self.spark = namespace.spark
        self._namespace = namespace
        self._snapshot_views = SnapshotViews(namespace.spark)
        self._read_history = read_history

    def _seen_by(self, spark: SparkSession, read_history: ReadHistory | None) -> Warehouse:
        """The same warehouse, seen by another session: names mean what they mean here."""
        here, other = self._namespace, copy(self)
        other._open(Namespace(spark, self.catalog, here.database, here.schema), read_history)
        return other

    def _read(self, text: str) -> str:
        """The text in the form that the engine reads; what is no text is left for others to refuse."""
        return as_read(text, quotes_for(self.spark, text)) if isinstance(text, str) else text

    def _mapping(self, rows: DataFrame) -> DataFrame:
        """The rows; what fails when they are computed is mapped, and names the table of a file that cannot be read."""
        return frames.mapping(rows, partial(damaged_tables.mapped, self._namespace))

    def _text_of(self, expression: str) -> str:
        with missing_functions.mapped(self._namespace):
            value = self._context(WriteSettings()).dataframe(f"select ({expression}\n)").collect()[0][0]
        if not isinstance(value, str):
            found = "null" if value is None else repr(value)
            raise InvalidStatementError(f"EXECUTE IMMEDIATE runs a text, and {expression} is {found}")
        return value

    def _write_settings(
        self, statement: Statement, txn: tuple[str, int] | None, user_metadata: str | None
    ) -> WriteSettings:
        commit = CommitSettings(
            isolation_level=self.settings.isolation_level,
            max_attempts=self.settings.max_commit_attempts,
            user_metadata=self._user_metadata(statement) if user_metadata is None else user_metadata,
        )
        return WriteSettings(
            txn=skips.checked(txn),
            commit=commit,
            is_forgotten_on_replace=self.settings.is_forgotten_on_replace,
            log_skips=self.settings.log_skips,
            progress=self.settings.progress,
        )

    def _user_metadata(self, statement: Statement) -> str | None:
        """The session's note; a query commits nothing, and is not made to ask."""
        return None if isinstance(statement, Query) else self.spark.conf.get(_USER_METADATA, None)

    def _context(self, settings: WriteSettings) -> Context:
        namespace = self._looking()
        time_zone = self.spark.conf.get("spark.sql.session.timeZone") or "UTC"
        given = self.settings
        allowed = Allowed(given.python_functions, given.stored_code, given.external_paths, given.file_locations)
        resolver = Resolver(namespace, self._snapshot_views, time_zone, allowed, self._read_history)
        return Context(self.spark, namespace, resolver, settings)

    def _looking(self) -> Namespace:
        """The namespace at the beginning of a statement, whose names are as they are now."""
        self._namespace.catalog = self.catalog.for_statement()
        return self._namespace

    def _run(self, statement: Statement, settings: WriteSettings) -> Result:
        retry = ConflictRetry(self.settings.statement_attempts, self.settings.clock, self._retry_queue)
        return retry.run(statement, settings, self._context)

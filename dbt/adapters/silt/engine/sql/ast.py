"""Defines the syntax tree: the statements that the parser recognises.

A name is a tuple of parts as the user wrote them, without backquotes: ("delta", "/a/path") for delta.`/a/path`. A
query, condition, expression or type is the user's own text, cut out by token span. `unsupported` lists the clauses that
were parsed but that no command of this engine supports, phrased for an error message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, TypeAlias

Name: TypeAlias = tuple[str, ...]


def is_path(name: Name) -> bool:
    """Returns whether the name is a table's path instead of its name: delta.`/some/path`."""
    return len(name) == 2 and name[0].lower() == "delta" and ("/" in name[1] or "\\" in name[1])


class CreateMode(Enum):
    """The behaviour of CREATE if the name is in use, and of REPLACE if it is not."""

    CREATE = "create"
    CREATE_IF_NOT_EXISTS = "create if not exists"
    CREATE_OR_REPLACE = "create or replace"
    REPLACE = "replace"


class ObjectKind(Enum):
    """The kind of object that a statement names."""

    TABLE = "table"
    VIEW = "view"
    COLUMN = "column"
    SCHEMA = "schema"
    DATABASE = "database"


class Effect(Enum):
    """The effect of a kind of statement. ROWS and METADATA are changes of a table that the log records.

    A program that may be rerun gives such statements a transaction identifier, because a repetition would apply them
    twice; a repeated RESTORE would undo later commits. Other statements need no identifier, or cannot have an
    identifier: views, schemas and functions are the same when they are created again; OPTIMIZE and VACUUM change no
    rows; DROP ends the log that would record the identifier; after RENAME the old name no longer exists.
    """

    ROWS = "a table's rows, or its existence"
    METADATA = "a table's columns, constraints, properties or comments"
    OTHER = "something that needs no transaction identifier, or is unknown"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement: its text, without comments around it and without a closing semicolon.

    A kind of statement is a subclass that declares its `effect`, None if it only reads or configures the session, and
    has an entry in `statements.route`.
    """

    text: str
    unsupported: tuple[str, ...] = ()
    effect: ClassVar[Effect | None]

    def __init_subclass__(cls, *, effect: Effect | None) -> None:
        cls.effect = effect

    @property
    def changes_something(self) -> bool:
        """Whether it may have a lasting effect; an unrecognised statement may."""
        return self.effect is not None

    @property
    def changes_session(self) -> bool:
        """Whether later statements of the session may mean something else: its settings, names and variables."""
        return False

    @property
    def changed_table(self) -> Name | None:
        """The table whose rows or metadata it changes, as it names it, if any."""
        return None

    @property
    def accepts_existing_table(self) -> bool:
        """Whether it creates a table, and accepts a table that already exists."""
        return False


@dataclass(frozen=True, kw_only=True)
class OnTable(Statement, effect=None):
    """A statement about a table."""

    table: Name

    @property
    def changed_table(self) -> Name | None:
        return self.table if self.effect in (Effect.ROWS, Effect.METADATA) else None


@dataclass(frozen=True, kw_only=True)
class MakesTable(OnTable, effect=None):
    """A CREATE of a table."""

    mode: CreateMode = CreateMode.CREATE

    @property
    def accepts_existing_table(self) -> bool:
        return self.mode is not CreateMode.CREATE


@dataclass(frozen=True, kw_only=True)
class OnObject(Statement, effect=None):
    """A statement about a table, a view, a column or a schema, by its own words; a column's name is the last part."""

    kind: ObjectKind
    name: Name

    @property
    def table(self) -> Name:
        """The table or view; for a column, its table."""
        return self.name[:-1] if self.kind is ObjectKind.COLUMN else self.name

    @property
    def changed_table(self) -> Name | None:
        is_table = self.kind in (ObjectKind.TABLE, ObjectKind.COLUMN)
        return self.table if is_table and self.effect in (Effect.ROWS, Effect.METADATA) else None


@dataclass(frozen=True, kw_only=True)
class Query(Statement, effect=None):
    """SELECT, WITH, VALUES, TABLE, FROM or a query in parentheses; `text` is the query."""


@dataclass(frozen=True, kw_only=True)
class Unrecognised(Statement, effect=Effect.OTHER):
    """Any other statement.

    `mentions` holds every identifier and dotted name outside of strings and comments, keywords included: a statement
    that mentions no table of the warehouse may be passed to Spark unchanged.
    """

    mentions: tuple[Name, ...]

    @property
    def changes_session(self) -> bool:
        return True


# Parts of statements


@dataclass(frozen=True)
class IdentityClause:
    """AS IDENTITY (START WITH `start` INCREMENT BY `step`), ALWAYS or BY DEFAULT."""

    start: int = 1
    step: int = 1
    by_default: bool = False


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of a new table; `type` is None if a query determines it, `generated` the text inside AS (...).

    `identity` describes the numbers of an identity column.
    """

    name: str
    type: str | None = None
    nullable: bool = True
    comment: str | None = None
    default: str | None = None
    generated: str | None = None
    identity: IdentityClause | None = None


class ConstraintKind(Enum):
    CHECK = "check"
    PRIMARY_KEY = "primary key"
    FOREIGN_KEY = "foreign key"
    UNIQUE = "unique"


@dataclass(frozen=True)
class Constraint:
    """A constraint of a table; `condition` is the text inside CHECK (...), `columns` the columns of a key.

    `references` is the table of a foreign key, with its `referenced_columns`; `enforced` is whether the text contains
    ENFORCED; `drops_rows` whether rows that break a CHECK are left out, instead of refusing the statement.
    """

    kind: ConstraintKind
    name: str | None = None
    condition: str | None = None
    columns: tuple[str, ...] = ()
    references: Name = ()
    referenced_columns: tuple[str, ...] = ()
    enforced: bool = False
    drops_rows: bool = False


@dataclass(frozen=True)
class Assignment:
    """`column = value` of a SET clause; `column` may carry the table's qualifier and a struct's fields."""

    column: Name
    value: str


@dataclass(frozen=True)
class TimeTravel:
    """`version as of` or `timestamp as of`: a single attribute is set, to the SQL of its expression."""

    version: str | None = None
    timestamp: str | None = None


@dataclass(frozen=True)
class Position:
    """The position of a column: first, or after another column of the same level."""

    after: str | None = None


# Tables, views, schemas, functions


@dataclass(frozen=True)
class ChangedKeys:
    """CHANGED KEYS (columns) [MAPPED TO input (columns), ...] [OR REPLACE ALL] (decision 0089).

    Attributes:
        columns: the columns of the query's result that are the key.
        inputs: the columns of inputs that hold the key, by the input's name.
        or_all: whether a query that cannot be evaluated for single keys replaces all rows, instead of an error.
    """

    columns: tuple[str, ...]
    inputs: tuple[tuple[Name, tuple[str, ...]], ...] = ()
    or_all: bool = False


@dataclass(frozen=True, kw_only=True)
class CreateTable(MakesTable, effect=Effect.ROWS):
    """CREATE [OR REPLACE] TABLE, with or without a query.

    `columns` ends with the typed columns of PARTITIONED BY, as in Spark; `using` is lower-case. `differences_by` is the
    key of WRITE DIFFERENCES BY, with which a table is replaced by the rows that differ (decision 0093).
    """

    columns: tuple[ColumnDefinition, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    using: str | None = None
    partitioned_by: tuple[str, ...] = ()
    clustered_by: tuple[Name, ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    query: str | None = None
    changed_keys: ChangedKeys | None = None
    differences_by: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CreateTableLike(MakesTable, effect=Effect.ROWS):
    """CREATE TABLE ... LIKE: an empty table with the schema of another relation."""

    source: Name
    using: str | None = None
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


class ViewScope(Enum):
    PERSISTENT = "persistent"
    TEMPORARY = "temporary"
    GLOBAL_TEMPORARY = "global temporary"


@dataclass(frozen=True)
class ViewColumn:
    """A column of a view; `fields` are the paths to fields inside it, with their comments."""

    name: str
    comment: str | None = None
    fields: tuple[tuple[Name, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class CreateView(Statement, effect=Effect.OTHER):
    """CREATE [OR REPLACE] [[GLOBAL] TEMPORARY] VIEW ... AS query."""

    name: Name
    query: str
    mode: CreateMode = CreateMode.CREATE
    scope: ViewScope = ViewScope.PERSISTENT
    columns: tuple[ViewColumn, ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CreateViewUsing(Statement, effect=Effect.OTHER):
    """CREATE TEMPORARY VIEW ... USING source OPTIONS (...): a view of files, which Spark reads itself."""

    name: Name
    using: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AlterViewQuery(Statement, effect=Effect.OTHER):
    """ALTER VIEW ... AS query."""

    name: Name
    query: str


@dataclass(frozen=True, kw_only=True)
class CreateSchema(Statement, effect=Effect.OTHER):
    name: Name
    mode: CreateMode = CreateMode.CREATE
    comment: str | None = None
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DropSchema(Statement, effect=Effect.OTHER):
    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, kw_only=True)
class DropTable(OnTable, effect=Effect.OTHER):
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True, kw_only=True)
class DropView(Statement, effect=Effect.OTHER):
    name: Name
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class Rename(OnObject, effect=Effect.OTHER):
    """ALTER TABLE | VIEW ... RENAME TO; `kind` is the statement's word, TABLE or VIEW."""

    new_name: Name


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function; `default` is the SQL of an expression."""

    name: str
    type: str
    default: str | None = None
    comment: str | None = None


@dataclass(frozen=True)
class Language:
    """LANGUAGE of a function that is not in SQL, upper-case, with the clauses that determine how its code runs."""

    name: str
    handler: str | None = None
    packages: tuple[str, ...] = ()
    runtime_version: str | None = None


@dataclass(frozen=True, kw_only=True)
class CreateFunction(Statement, effect=Effect.OTHER):
    """CREATE [TEMPORARY] FUNCTION.

    A SQL function has a `body` (the text after RETURN: an expression or a query) and the text of RETURNS, a type or
    `table (...)`. In another `language`, the body is the function's code; any other kind (a Java class) has no body.
    """

    name: Name
    mode: CreateMode = CreateMode.CREATE
    temporary: bool = False
    parameters: tuple[Parameter, ...] = ()
    returns: str | None = None
    deterministic: bool | None = None
    comment: str | None = None
    language: Language | None = None
    body: str | None = None

    @property
    def changes_session(self) -> bool:
        return self.temporary


@dataclass(frozen=True, kw_only=True)
class DropFunction(Statement, effect=Effect.OTHER):
    name: Name
    if_exists: bool = False
    temporary: bool = False

    @property
    def changes_session(self) -> bool:
        return self.temporary


@dataclass(frozen=True, kw_only=True)
class CommentOn(OnObject, effect=Effect.METADATA):
    """COMMENT ON; a missing comment removes it. For a column, the last part of `name` is the column."""

    comment: str | None


# ALTER TABLE


@dataclass(frozen=True)
class NewColumn:
    """A column to add; `path` has several parts for the field of a struct, `generated` is the text in AS (...)."""

    path: Name
    type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None
    position: Position | None = None
    generated: str | None = None


@dataclass(frozen=True)
class ColumnChange:
    """The changes of an ALTER COLUMN; None keeps an attribute, an empty default removes the default."""

    path: Name
    new_name: str | None = None
    type: str | None = None
    comment: str | None = None
    nullable: bool | None = None
    position: Position | None = None
    default: str | None = None


@dataclass(frozen=True, kw_only=True)
class AddColumns(OnTable, effect=Effect.METADATA):
    columns: tuple[NewColumn, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class DropColumns(OnTable, effect=Effect.METADATA):
    columns: tuple[Name, ...]
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class AlterColumns(OnTable, effect=Effect.METADATA):
    """ALTER | CHANGE | RENAME COLUMN."""

    changes: tuple[ColumnChange, ...]


@dataclass(frozen=True, kw_only=True)
class AlterClustering(OnTable, effect=Effect.METADATA):
    """ALTER TABLE ... CLUSTER BY; without columns for CLUSTER BY NONE."""

    columns: tuple[Name, ...]


@dataclass(frozen=True, kw_only=True)
class SetProperties(OnObject, effect=Effect.METADATA):
    properties: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class UnsetProperties(OnObject, effect=Effect.METADATA):
    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class AddConstraint(OnTable, effect=Effect.METADATA):
    constraint: Constraint


@dataclass(frozen=True, kw_only=True)
class DropConstraint(OnTable, effect=Effect.METADATA):
    constraint: str
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class AlterOther(OnObject, effect=Effect.OTHER):
    """Any other ALTER of a table or view; `unsupported` names the action."""


# Rows


class InsertMode(Enum):
    INTO = "into"
    OVERWRITE = "overwrite"
    REPLACE_WHERE = "replace where"
    REPLACE_USING = "replace using"
    REPLACE_ON = "replace on"
    REPLACE_CHANGED = "replace changed keys"


@dataclass(frozen=True)
class PartitionValue:
    """`column [= value]` of a PARTITION clause; `value` is the constant's SQL, None for a dynamic partition."""

    column: str
    value: str | None = None


@dataclass(frozen=True, kw_only=True)
class Insert(OnTable, effect=Effect.ROWS):
    """INSERT; `query` is a complete query (a leading WITH is part of it, VALUES and TABLE are queries too).

    `condition` belongs to REPLACE WHERE and REPLACE ON, `using` to REPLACE USING, `source_alias` to REPLACE ON,
    `changed_keys` to REPLACE CHANGED KEYS.
    """

    query: str
    mode: InsertMode = InsertMode.INTO
    alias: str | None = None
    partition: tuple[PartitionValue, ...] = ()
    columns: tuple[str, ...] = ()
    by_name: bool = False
    if_not_exists: bool = False
    condition: str | None = None
    using: tuple[str, ...] = ()
    source_alias: str | None = None
    changed_keys: ChangedKeys | None = None
    schema_evolution: bool = False


class SaveMode(Enum):
    """The behaviour of a write of rows if the table exists, as in Spark's DataFrameWriter."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    ERROR = "error"
    IGNORE = "ignore"


@dataclass(frozen=True, kw_only=True)
class WriteRows(OnTable, effect=Effect.ROWS):
    """A write of a temporary view's rows into a table, which is created if missing; `text` describes it in words.

    `partition_by` and `cluster_by` are None if the table's own, or none, are wanted.
    """

    view: str
    mode: SaveMode
    partition_by: tuple[str, ...] | None = None
    cluster_by: tuple[str, ...] | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    replace_where: str | None = None

    @property
    def accepts_existing_table(self) -> bool:
        return self.mode is not SaveMode.ERROR


@dataclass(frozen=True, kw_only=True)
class InsertDirectory(Statement, effect=Effect.OTHER):
    """INSERT OVERWRITE DIRECTORY: `head` + a query, which Spark writes to files outside of tables."""

    head: str
    query: str


@dataclass(frozen=True, kw_only=True)
class Delete(OnTable, effect=Effect.ROWS):
    alias: str | None = None
    condition: str | None = None


@dataclass(frozen=True, kw_only=True)
class Update(OnTable, effect=Effect.ROWS):
    assignments: tuple[Assignment, ...]
    alias: str | None = None
    condition: str | None = None


@dataclass(frozen=True)
class MergeSource:
    """The source of a MERGE.

    `query` returns the rows to write. `name` is set if the source is just a table or view: its columns may then
    be qualified by its name; `alias` qualifies them instead if present.
    """

    query: str
    name: Name | None = None
    alias: str | None = None


class MatchKind(Enum):
    """The kind of rows to which a WHEN clause of a MERGE applies."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"

    @property
    def sql(self) -> str:
        return f"WHEN {self.value.upper()}"


class RowVerb(Enum):
    """The change of a row by an action of a MERGE."""

    UPDATE = "update"
    INSERT = "insert"
    DELETE = "delete"


@dataclass(frozen=True)
class UpdateAll:
    """UPDATE SET *: every column from the source's column of the same name."""

    verb: ClassVar = RowVerb.UPDATE


@dataclass(frozen=True)
class UpdateSet:
    """UPDATE SET column = value, ..."""

    verb: ClassVar = RowVerb.UPDATE
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True)
class InsertAll:
    """INSERT *: every column from the source's column of the same name."""

    verb: ClassVar = RowVerb.INSERT


@dataclass(frozen=True)
class InsertValues:
    """INSERT (columns) VALUES (values); without columns, by position."""

    verb: ClassVar = RowVerb.INSERT
    columns: tuple[Name, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class DeleteRow:
    """DELETE"""

    verb: ClassVar = RowVerb.DELETE


MergeAction: TypeAlias = UpdateAll | UpdateSet | InsertAll | InsertValues | DeleteRow


@dataclass(frozen=True)
class MergeClause:
    kind: MatchKind
    action: MergeAction
    condition: str | None = None


@dataclass(frozen=True, kw_only=True)
class Merge(OnTable, effect=Effect.ROWS):
    """MERGE; `clauses` are in the order of the text, which decides which clause applies to a row.

    `skips_equal_rows` is set if no row is written that an update would set to the values that it has.
    """

    source: MergeSource
    condition: str
    clauses: tuple[MergeClause, ...]
    alias: str | None = None
    schema_evolution: bool = False
    skips_equal_rows: bool = False


@dataclass(frozen=True, kw_only=True)
class Truncate(OnTable, effect=Effect.ROWS):
    partition: tuple[PartitionValue, ...] = ()


# Metadata queries


@dataclass(frozen=True, kw_only=True)
class DescribeTable(OnTable, effect=None):
    """DESCRIBE [TABLE] [EXTENDED | FORMATTED] name [column] [AS JSON]."""

    extended: bool = False
    column: Name | None = None


@dataclass(frozen=True, kw_only=True)
class DescribeHistory(OnTable, effect=None):
    limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class DescribeDetail(OnTable, effect=None):
    """DESCRIBE DETAIL name."""


@dataclass(frozen=True, kw_only=True)
class DescribeQuery(Statement, effect=None):
    query: str


@dataclass(frozen=True, kw_only=True)
class DescribeSchema(Statement, effect=None):
    name: Name
    extended: bool = False


@dataclass(frozen=True, kw_only=True)
class DescribeFunction(Statement, effect=None):
    """DESCRIBE FUNCTION; `name` is empty for an operator."""

    name: Name
    extended: bool = False


class ShowKind(Enum):
    TABLES = "tables"
    TABLE_EXTENDED = "table extended"
    VIEWS = "views"
    SCHEMAS = "schemas"
    CATALOGS = "catalogs"
    COLUMNS = "columns"
    CREATE_TABLE = "create table"
    PROPERTIES = "tblproperties"
    PARTITIONS = "partitions"
    FUNCTIONS = "functions"


@dataclass(frozen=True, kw_only=True)
class Show(Statement, effect=None):
    """SHOW what [IN name] [LIKE pattern].

    `name` is the schema (TABLES, TABLE_EXTENDED, VIEWS, FUNCTIONS), the database (SCHEMAS) or the table (COLUMNS,
    CREATE_TABLE, PROPERTIES, PARTITIONS), None if the text omits it; `key` the requested property;
    `scope` the word before FUNCTIONS (user, system, all), lower-case.
    """

    what: ShowKind
    name: Name | None = None
    pattern: str | None = None
    key: str | None = None
    scope: str | None = None


@dataclass(frozen=True, kw_only=True)
class Explain(Statement, effect=None):
    """EXPLAIN [mode] statement; `mode` is lower-case."""

    statement: Statement
    mode: str | None = None


# The session


@dataclass(frozen=True, kw_only=True)
class Use(Statement, effect=None):
    """USE name, USE SCHEMA name, or SET CATALOG name; `kind` is None if the text does not name the kind of object."""

    name: Name
    kind: ObjectKind | None = None

    @property
    def changes_session(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class SetSetting(Statement, effect=None):
    """SET key = value, SET TIME ZONE ...; a key alone (value None) or nothing (key None) lists settings."""

    key: str | None = None
    value: str | None = None

    @property
    def changes_session(self) -> bool:
        return self.value is not None and not (self.key or "").startswith("silt.")


@dataclass(frozen=True, kw_only=True)
class ResetSetting(Statement, effect=None):
    key: str | None = None

    @property
    def changes_session(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class Begin(Statement, effect=None):
    """BEGIN [TRANSACTION | WORK], or START TRANSACTION."""


@dataclass(frozen=True, kw_only=True)
class Commit(Statement, effect=Effect.OTHER):
    """COMMIT [TRANSACTION | WORK]."""


@dataclass(frozen=True, kw_only=True)
class Rollback(Statement, effect=None):
    """ROLLBACK [TRANSACTION | WORK]."""


# Maintenance


@dataclass(frozen=True, kw_only=True)
class Cache(OnTable, effect=None):
    """CACHE TABLE name [AS query]."""

    query: str | None = None


@dataclass(frozen=True, kw_only=True)
class Uncache(Statement, effect=None):
    """UNCACHE TABLE name, or CLEAR CACHE without a table."""

    table: Name | None


@dataclass(frozen=True, kw_only=True)
class Refresh(OnTable, effect=None):
    """REFRESH [TABLE] name."""


@dataclass(frozen=True, kw_only=True)
class Analyze(Statement, effect=None):
    """ANALYZE TABLE name COMPUTE STATISTICS, or ANALYZE TABLES [IN schema] (`kind` SCHEMA, `name` may be None)."""

    kind: ObjectKind
    name: Name | None


@dataclass(frozen=True, kw_only=True)
class Optimize(OnTable, effect=Effect.OTHER):
    condition: str | None = None
    zorder_by: tuple[Name, ...] = ()
    full: bool = False


@dataclass(frozen=True, kw_only=True)
class OptimizeTables(Statement, effect=Effect.OTHER):
    """OPTIMIZE TABLES [IN schema] [(name, ...)] BUDGET 'time' [DRY RUN]: upkeep, by default of the whole database."""

    schema: Name | None = None
    names: tuple[Name, ...] = ()
    budget: str
    dry_run: bool = False

    @property
    def changes_something(self) -> bool:
        return not self.dry_run


@dataclass(frozen=True, kw_only=True)
class Vacuum(OnTable, effect=Effect.OTHER):
    """VACUUM table [LITE | FULL] [RETAIN n HOURS] [DRY RUN]; `retain_hours` is the number as written."""

    retain_hours: str | None = None
    dry_run: bool = False
    lite: bool = False

    @property
    def changes_something(self) -> bool:
        return not self.dry_run


@dataclass(frozen=True, kw_only=True)
class Restore(OnTable, effect=Effect.ROWS):
    to: TimeTravel


@dataclass(frozen=True, kw_only=True)
class Clone(MakesTable, effect=Effect.ROWS):
    """CREATE [OR REPLACE] TABLE name SHALLOW | DEEP CLONE source [time travel]."""

    source: Name
    shallow: bool
    at: TimeTravel | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None


@dataclass(frozen=True, kw_only=True)
class ConvertToDelta(Statement, effect=Effect.OTHER):
    """CONVERT TO DELTA parquet.`path` [NO STATISTICS] [PARTITIONED BY (...)]."""

    source: Name
    partitioned_by: tuple[ColumnDefinition, ...] = ()
    statistics: bool = True


@dataclass(frozen=True, kw_only=True)
class Call(Statement, effect=Effect.OTHER):
    """CALL procedure(...)."""

    procedure: Name

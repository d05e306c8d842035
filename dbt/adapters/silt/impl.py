"""The adapter that dbt and its macros call. Answers questions about metadata from the log, without a Spark job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.impl import BaseAdapter, log_code_execution
from dbt.adapters.base.meta import available
from dbt.adapters.base.plugin import AdapterPlugin
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.impl import SparkAdapter

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.connections import SiltConnectionManager
from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationKind, RelationName, normalize
from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, SchemaNotFoundError
from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.materializations.configs import check_configs, sample_warning
from dbt.adapters.silt.materializations.incremental.config import IncrementalConfig
from dbt.adapters.silt.materializations.partitioning import Clustering, Partitioning, clustering, partitioning
from dbt.adapters.silt.materializations.unused_configs import ConfigNames
from dbt.adapters.silt.methods.changes import ChangeMethods, LossMethods
from dbt.adapters.silt.methods.contracts import ContractMethods
from dbt.adapters.silt.methods.documentation import DocumentationMethods
from dbt.adapters.silt.methods.incremental import IncrementalMethods, SnapshotMethods
from dbt.adapters.silt.methods.later_statements import LaterStatementMethods
from dbt.adapters.silt.methods.nodes import NodeMethods
from dbt.adapters.silt.methods.operations import RegistrationMethods, RollbackMethods
from dbt.adapters.silt.methods.overrides import OverrideMethods
from dbt.adapters.silt.methods.schemas import SchemaMethods
from dbt.adapters.silt.methods.seeds import SeedMethods
from dbt.adapters.silt.methods.tests import ReusedTestMethods, UnitTestMethods
from dbt.adapters.silt.relation import SiltRelation
from dbt.adapters.silt.runs.node_context import full_refresh_of
from dbt.adapters.silt.runs.once import first_time
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.runs.submission import Submission

if TYPE_CHECKING:
    import agate
    from dbt.adapters.base.relation import BaseRelation
    from dbt.adapters.contracts.connection import AdapterResponse

    from dbt.adapters.silt.engine.commands.spark import types as spark_types
    from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
    from dbt.adapters.silt.materializations import quiet_losses, row_comparison
    from dbt.adapters.silt.materializations.external import files as external_files
    from dbt.adapters.silt.materializations.external import target as external_targets
    from dbt.adapters.silt.materializations.python_models import errors as python_errors
    from dbt.adapters.silt.materializations.python_models import run as python_models
    from dbt.adapters.silt.materializations.unit_tests import literals
    from dbt.adapters.silt.runs import agate_tables, cut_relations
    from dbt.adapters.silt.runs import text_table as text_tables
    from dbt.adapters.silt.session import diagnosis
else:
    agate_tables = lazy_module("dbt.adapters.silt.runs.agate_tables")
    spark_types = lazy_module("dbt.adapters.silt.engine.commands.spark.types")
    literals = lazy_module("dbt.adapters.silt.materializations.unit_tests.literals")
    quiet_losses = lazy_module("dbt.adapters.silt.materializations.quiet_losses")
    row_comparison = lazy_module("dbt.adapters.silt.materializations.row_comparison")
    external_files = lazy_module("dbt.adapters.silt.materializations.external.files")
    external_targets = lazy_module("dbt.adapters.silt.materializations.external.target")
    python_errors = lazy_module("dbt.adapters.silt.materializations.python_models.errors")
    python_models = lazy_module("dbt.adapters.silt.materializations.python_models.run")
    cut_relations = lazy_module("dbt.adapters.silt.runs.cut_relations")
    text_tables = lazy_module("dbt.adapters.silt.runs.text_table")
    diagnosis = lazy_module("dbt.adapters.silt.session.diagnosis")

logger = AdapterLogger("Silt")

_FULL = CapabilitySupport(support=Support.Full)
_RELATION_TYPES = {RelationKind.TABLE: RelationType.Table, RelationKind.VIEW: RelationType.View}


@dataclass
class SiltConfig(IncrementalConfig):
    """The configs of a model that the adapter adds to dbt's.

    `unused_configs` lists the configs of other adapters that are accepted without effect.

    Attributes:
        partition_by: the columns by which the files of a table or of an `external` model are partitioned into folders.
        liquid_clustered_by, cluster_by: the columns by which OPTIMIZE clusters the files of a table without
            partitions; an empty list ends it for an existing table.
        tblproperties: properties of the table: key -> value.
        incremental_apply_config_changes: whether a run applies changes of the `tblproperties`, the clustering and the
            contract of an incremental model or a snapshot to its existing table; true by default.
        isolation_level: the isolation level of the node's own commit, instead of the level in the profile or the table.
        user_metadata: a note in the node's commits, which `describe history` shows.
        write: `all` (the default) replaces all rows of a `table` model; `differences` writes only the rows that differ
            from the table's, paired by `unique_key`.
        reuse: `unchanged` reuses the node instead of building it if its table already holds what the build would write;
            a data test with it runs again only if its input has changed, or it has not passed. `{from: prod}` also
            clones the table of the target `prod` instead of building an equal one.
        state: `lag_tolerance`, such as 4h, is the time after a build in which new rows of its inputs do not build the
            node again.
        pure: whether the rows of a python model depend on its code and its `dbt.ref` inputs only, so that it may be
            reused.
        enforced_keys: whether the primary keys, unique keys and foreign keys of the contract are enforced by every
            commit, unless a constraint says otherwise; by default as `enforced_keys` in the profile.
        after_publish: a statement, or a list of statements, that run when the run is published, or after the post-hooks
            if each change is visible at once.
        audit: `before_commit` lets the data tests of the node judge its rows before their commit.
        scope: the rows that the tests of an audited node judge: `state`, the whole table as the commit would leave it,
            or `changes`, the rows that the commit adds.
        on_failure: the end of the write of an audited node if a test fails: `refuse` commits nothing; `warn` commits
            with a warning; `quarantine` commits the good rows, and the bad rows to the table `<name>__quarantine`.
        audit_warnings: `refuse` treats a test that warns like a test that fails.
        max_quarantined: how many rows may be quarantined, as a number or a percentage of the written rows; 1 % by
            default. With more, nothing is committed.
        query_tag, query_tags: a tag of the node's Spark jobs.
        file_format, table_format: accepted for projects of other adapters; every table is a Delta table.

        location: the folder or file that an `external` model writes; the extension of a file names the format.
        format: the format of an `external` model's files: parquet, csv, json or orc.
        options: options of Spark's writer for an `external` model.
        delimiter: the character between values in the CSV of an `external` model or a seed.
    """

    partition_by: dict[str, Any] | list[str] | str | None = None
    liquid_clustered_by: Any = None
    cluster_by: Any = None
    tblproperties: dict[str, Any] | None = None
    incremental_apply_config_changes: bool | str | None = None
    isolation_level: str | None = None
    user_metadata: str | None = None
    write: str | None = None
    reuse: Any = None
    state: dict[str, Any] | None = None
    pure: bool | None = None
    audit: str | None = None
    scope: str | None = None
    on_failure: str | None = None
    audit_warnings: str | None = None
    max_quarantined: Any = None
    enforced_keys: bool | None = None
    after_publish: Any = None
    query_tag: str | None = None
    query_tags: Any = None
    file_format: str | None = None
    table_format: str | None = None

    location: str | None = None
    format: str | None = None
    options: dict[str, Any] | None = None
    delimiter: str | None = None


_CONFIG_NAMES = ConfigNames(SiltConfig)


class SiltAdapter(  # type: ignore[misc]  # dbt hands an adapter relations of its own class only
    ContractMethods,
    DocumentationMethods,
    IncrementalMethods,
    LaterStatementMethods,
    LossMethods,
    OverrideMethods,
    RegistrationMethods,
    RollbackMethods,
    SchemaMethods,
    SeedMethods,
    SnapshotMethods,
    ChangeMethods,
    NodeMethods,
    ReusedTestMethods,
    UnitTestMethods,
    SparkAdapter,
):
    """The adapter of type `silt`."""

    Relation = SiltRelation
    Column = SiltColumn
    ConnectionManager = SiltConnectionManager  # type: ignore[assignment]  # dbt-spark narrows dbt's own types
    AdapterSpecificConfigs = SiltConfig  # type: ignore[assignment]
    connections: SiltConnectionManager

    _capabilities = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: _FULL,
            Capability.TableLastModifiedMetadata: _FULL,
            Capability.TableLastModifiedMetadataBatch: _FULL,
            Capability.GetCatalogForSingleRelation: _FULL,
            Capability.MicrobatchConcurrency: _FULL,
        }
    )

    # Nodes

    @contextlib.contextmanager
    def connection_named(
        self, name: str, query_header_context: Any = None, should_release_connection: bool = True
    ) -> Iterator[None]:
        named = super().connection_named(name, query_header_context, should_release_connection)
        node = self.connections.node.scope(query_header_context, lambda: self.connections.handle.is_cancelled)
        with named, node, self.explain_macros():
            self.check_materialization(query_header_context)
            yield
            self.register_own_table()

    # Relations

    def list_relations(self, database: str | None, schema: str | None) -> list[BaseRelation]:
        if not schema:  # a temporary view, which is in no schema
            return []
        self.connections.node.context.looks += 1
        # All are added in one step: once the cache has one relation of a schema, dbt treats relations that it lacks as
        # missing.
        with self.cache.lock:
            # dbt takes names from the names of files, and some file systems store a letter and its accent as two
            # characters.
            return super().list_relations(self._database_of(database, schema), normalize(schema))

    def get_relation(self, database: str, schema: str, identifier: str) -> BaseRelation | None:
        """Returns the table or view, if it exists; a function of the same name does not stand in the way of a model."""
        database = self._database_of(database, schema)
        if schema and identifier:
            self._look_again(database, schema, identifier)
        found = BaseAdapter.get_relation(self, database, schema, identifier)
        return None if found is not None and found.is_function else found

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Returns the tables, views and functions of a schema; an empty list only if the schema certainly is missing.

        If a table and a function have the same name, only the table is returned.

        Raises:
            DbtRuntimeError: if the listing failed; with an empty list an incremental model would rebuild its table.
        """
        schema = schema_relation.schema or ""
        database = self._database_of(schema_relation.database, schema)
        with self.connections.exception_handler(f"list {database}.{schema}"):
            try:
                entries = self.connections.catalog.relations(database, schema)
                functions = self.connections.catalog.functions(database, schema)
            except (SchemaNotFoundError, InvalidNameError):
                return []
        types = dict.fromkeys(functions, RelationType.Function)
        types |= {entry.name: _RELATION_TYPES[entry.kind] for entry in entries}
        return [self._relation(name, kind) for name, kind in types.items()]

    def get_columns_in_relation(self, relation: SiltRelation) -> list[SiltColumn]:  # type: ignore[override]
        """Returns the columns of a table (from its log) or a view; an empty list if the relation is missing."""
        self.connections.node.context.looks += 1
        with self.connections.exception_handler(f"get the columns of {relation}"):
            if relation.is_temporary or relation.external:
                return self._columns_of_query(f"select * from {relation.render()}")
            entry = self._find(relation)
            if entry is not None:
                return self._columns(entry)
            files = self._on_files(relation)
            return [] if files is None else self._columns_of_query(f"select * from {files.render()}")

    def get_missing_columns(self, from_relation: SiltRelation, to_relation: SiltRelation) -> list[SiltColumn]:
        """Returns the columns of a relation that another relation lacks; the case of names does not matter."""
        known = {each.name.lower() for each in self.get_columns_in_relation(to_relation)}
        missing = super().get_missing_columns(from_relation, to_relation)
        return [each for each in missing if each.name.lower() not in known]

    @available.parse(lambda *_, **__: [])
    def get_column_schema_from_query(self, sql: str) -> list[SiltColumn]:
        """Returns the columns of a query, which is not run; statements before it in the text (a `sql_header`) are."""
        with self.connections.exception_handler(sql):
            *header, query = Submission(sql).statements
            if header:
                self.connections.handle.cursor().execute(";".join(header))
            return self._columns_of_query(query)

    @available
    def cache_added(self, relation: BaseRelation | None) -> str:
        """Adds the relation to dbt's cache, and replaces an entry of another kind."""
        self.connections.node.end()
        # In one step: otherwise another batch of the model could find the table missing in between, and create it
        # again.
        with self.cache.lock:
            if relation is not None:
                self.cache.drop(relation)
            nothing: str = super().cache_added(relation)
            return nothing

    @available.parse(lambda *_, **__: "false")
    def rows_differ(self, new: str, sql: str, old: str, relation: SiltRelation) -> str:
        """Returns a condition on a query's row, by the alias `new`, and a row of its table, by the alias `old`."""
        with self.connections.exception_handler(sql):
            query = self.connections.handle.warehouse.schema_of(cut_relations.current_text(sql))
            table = spark_types.spark_schema(self._snapshot(relation).schema)
            return row_comparison.rows_differ(new, query, old, table)

    def expand_column_types(self, goal: BaseRelation, current: BaseRelation) -> None:
        """Does nothing: types have no size to be expanded."""

    @available.parse_none
    def relation_comment(self, relation: SiltRelation) -> str | None:
        """Returns the comment of a table."""
        with self.connections.exception_handler(f"get the comment of {relation}"):
            return self._snapshot(relation).metadata.description

    @available
    def text_table(self, rows: agate.Table, response: AdapterResponse | None = None) -> str:
        """Returns a result as text for a terminal: its note or rows, or the response if it has no columns."""
        note = getattr(response, "note", None)
        if note:
            return str(note)
        if response is not None and not rows.columns:
            return text_tables.response_table(response)
        return text_tables.text_table(rows)

    # Files outside of the warehouse

    def external_target(self, model: Mapping[str, Any], location: str) -> external_targets.ExternalTarget:
        """Returns location and format of the files that a model of the materialization `external` writes."""
        columns = partitioning(model["config"].get("partition_by")).columns
        config = {**model["config"], "partition_by": columns}
        taken = self.connections.sessions.environment.locations.values()
        target = external_targets.target_of({**model, "config": config}, location, self.config.project_root, taken)
        with self.connections.exception_handler(f"look at {target.location}"):
            external_files.check_target(target, self.connections.sessions.environment.open_store)
        return target

    @available.parse_none
    def write_external(
        self, query: str, header: str | None, target: external_targets.ExternalTarget
    ) -> external_files.ExternalFiles:
        """Writes the query's rows as files; `header` are statements to run before."""
        with self.connections.exception_handler(query):
            handle = self.connections.handle
            if header:
                handle.cursor().execute(header)
            with handle.busy(query):
                rows = handle.warehouse.sql(cut_relations.current_text(query))
                return external_files.write_external(rows, target, self.connections.sessions.environment.open_store)

    def config_warnings(
        self,
        model: Mapping[str, Any],
        nodes: Mapping[str, Mapping[str, Any]],
        selected: Iterable[str],
        sources: Mapping[str, Mapping[str, Any]],
    ) -> list[str]:
        """Returns warnings of configs without effect, each once in a run; fails if a schema or config is invalid."""
        self.check_place(model)
        self.connections.node.know(nodes.values())
        others = [nodes[each] for each in selected if each in nodes]
        found = check_configs(model, _CONFIG_NAMES, str(self.config.project_name), others)
        if first_time("configs outside of `config` were looked for"):
            files = getattr(self.get_macro_resolver(), "files", {})
            found += _CONFIG_NAMES.misplaced(files.values(), str(self.config.project_name))
        found += quiet_losses.misread_texts(model, self.config.credentials.quotes.double_quoted_identifiers)
        is_sample = self.connections.invocation.context.sample
        whole = sample_warning(others, {**nodes, **sources}) if is_sample else None
        return found if whole is None else [*found, whole]

    # For macros that build statements

    @available
    @classmethod
    def partitioning(cls, config: Any) -> Partitioning:
        """Returns the meaning of the config `partition_by`, which has several forms."""
        return partitioning(config)

    @available
    @classmethod
    def clustering(cls, config: Mapping[str, Any]) -> Clustering:
        """Returns the meaning of the configs `liquid_clustered_by` and `cluster_by`."""
        return clustering(config)

    @available
    @classmethod
    def quote(cls, identifier: object) -> str:
        # While dbt parses, a macro may pass on a name that is not known yet; converted to text, it is empty.
        return quote(str(identifier))

    @available
    @classmethod
    def string_literal(cls, text: str) -> str:
        return string_literal(text)

    @available
    def escape_single_quotes(self, text: str) -> str:
        """Returns the value as written between the quotes of a literal, in a session with the profile's settings."""
        has_plain_backslashes = self.config.credentials.quotes.escaped_string_literals
        return text if has_plain_backslashes and "'" not in text else string_literal(text)[1:-1]

    @available
    def nested_literal(self, value: Any, kind: str) -> str:
        """Returns a fixture's value as an expression of an array, map, struct or variant type."""
        return literals.nested_literal(value, kind, self.config.credentials.quotes)

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Returns the type of a seed's numbers: bigint, a wide decimal for larger whole numbers, or else double."""
        column = agate_tables.to_arrow(agate_table.select([agate_table.column_names[col_idx]]))
        return agate_tables.number_type(column.schema.field(0).type)

    @available.parse_none
    @log_code_execution  # type: ignore[untyped-decorator]
    def submit_python_job(self, parsed_model: dict[str, Any], compiled_code: str) -> AdapterResponse:
        """Runs a python model in this process; its rows are then a temporary view of the session.

        Each statement in its code that writes another table is a unit of work, like a hook's statement.
        """
        relation = self.Relation.create(parsed_model["database"], parsed_model["schema"], parsed_model["alias"])
        full_refresh = full_refresh_of(parsed_model["config"], self.connections.invocation.full_refresh)
        self.enter_hook(parsed_model, "python_model", relation, full_refresh)
        try:
            with self.connections.exception_handler(f"python model {parsed_model['name']}"):
                source = python_errors.ModelSource.of(parsed_model, self.config)
                view = python_models.run_python_model(self.connections.handle, parsed_model, compiled_code, source)
        finally:
            self.leave_hook()
        return SiltResponse(f"OK: {view}", code="OK")

    def validate_sql(self, sql: str) -> AdapterResponse:
        self.get_column_schema_from_query(sql)
        return SiltResponse("OK", code="OK")

    def debug_query(self) -> None:
        """Logs versions and databases for `dbt debug`; fails if the warehouse cannot be written."""
        with self.connections.exception_handler("look at the connection"):
            session, environment = self.connections.handle.session, self.connections.sessions.environment
            own, asked = self._own_database, self.config.credentials.accelerator is not None
            for name, text in diagnosis.diagnose(
                session, environment.catalog, own, environment.locations, environment.storages, asked
            ):
                logger.info(f"{name}: {text}")

    def run_sql_for_tests(self, sql: str, fetch: str, conn: Any) -> Any:
        with self.connections.exception_handler(sql):
            cursor = conn.handle.cursor()
            cursor.execute(sql)
            if fetch == "one":
                return cursor.fetchone()
            if fetch == "all":
                return cursor.fetchall()
            cursor.drain()
            return None

    @classmethod
    def _get_adapter_specific_run_info(cls, config: Any) -> dict[str, Any]:  # noqa: ARG003 - dbt's signature
        return {"adapter_type": "silt", "table_format": "delta"}

    # Inside

    @property
    def _own_database(self) -> str:
        return str(self.config.credentials.database)

    def _database_of(self, database: str | None, schema: str | None) -> str:
        return self.connections.catalog.database_of(database, schema or "", self._own_database)

    def _full_name(self, relation: SiltRelation) -> RelationName:
        name = relation.relation_name(self._own_database)
        return replace(name, database=self._database_of(name.database, name.schema))

    def _find(self, relation: SiltRelation) -> RelationEntry | None:
        return self.connections.catalog.find(self._full_name(relation))

    def _snapshot(self, relation: SiltRelation) -> Snapshot:
        return self.connections.catalog.table(self._full_name(relation)).snapshot()

    def _look_again(self, database: str, schema: str, identifier: str) -> None:
        """Updates dbt's cache if a statement of this command, such as a hook, has created or dropped the relation."""
        with contextlib.suppress(InvalidNameError), self.cache.lock:  # an invalid name is refused when it is used
            name = RelationName(database, schema, identifier)
            if not self.connections.sessions.take_changed_name(name) or (name.database, name.schema) not in self.cache:
                return
            self.cache.drop(self.Relation.create(name.database, name.schema, name.identifier))
            entry = self.connections.catalog.find(name)
            if entry is not None:
                self.cache.add(self._relation(entry.name, _RELATION_TYPES[entry.kind]))

    def _on_files(self, relation: BaseRelation) -> SiltRelation | None:
        """Returns the source on files with this name: a unit test asks for a source's columns by the name alone."""
        for source in getattr(self._macro_resolver, "sources", {}).values():
            found = self.Relation.create_from(self.config, source)
            if found.external and found.matches(relation.database, relation.schema, relation.identifier):
                return found
        return None

    def _relation(self, name: RelationName, kind: RelationType) -> SiltRelation:
        return self.Relation.create(name.database, name.schema, name.identifier, type=kind)

    def _columns(self, entry: RelationEntry) -> list[SiltColumn]:
        if entry.kind is RelationKind.VIEW:
            columns = self._columns_of_query(f"select * from {entry.name.quoted}")
            comments = self.connections.catalog.view(entry.name).comments
            return [each.commented(comments) for each in columns]
        snapshot = self.connections.catalog.table(entry.name).snapshot()
        return SiltColumn.of_schema(spark_types.spark_schema(snapshot.schema))

    def _columns_of_query(self, sql: str) -> list[SiltColumn]:
        return SiltColumn.of_schema(self.connections.handle.warehouse.schema_of(sql))


def _include_path() -> Path:
    """Returns the folder of this package's dbt project: next to `dbt/` in a checkout, within it when installed."""
    dbt = Path(__file__).resolve().parents[2]
    installed = dbt / "include" / "silt" / "include"
    return installed if installed.is_dir() else dbt.parent / "include"


Plugin = AdapterPlugin(
    adapter=SiltAdapter,  # type: ignore[arg-type]  # its protocol names the classes of dbt's own adapter
    credentials=SiltCredentials,
    include_path=str(_include_path()),
    project_name="dbt_silt",
    dependencies=["spark"],
)

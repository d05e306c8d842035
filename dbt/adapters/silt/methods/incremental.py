"""Macro API of incremental models and snapshots: checks their configuration, and builds clauses and conditions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError, DbtDatabaseError

from dbt.adapters.silt.engine.kernel.errors import ChangesMissingError
from dbt.adapters.silt.engine.kernel.identifiers import listed, quote
from dbt.adapters.silt.materializations import snapshots
from dbt.adapters.silt.materializations.incremental import config_columns, strategies
from dbt.adapters.silt.materializations.incremental.changed_keys import changed_keys_clause
from dbt.adapters.silt.materializations.incremental.consumed_changes import (
    CHANGE_TYPE,
    ChangesOptions,
    changes_call,
    check_rebuild,
    takes_upserts,
)
from dbt.adapters.silt.materializations.incremental.merge_clause_checks import as_list
from dbt.adapters.silt.materializations.incremental.merge_clauses import (
    Sides,
    WhenClause,
    is_by_position,
    merge_clauses,
    unwritten_columns,
)
from dbt.adapters.silt.materializations.incremental.microbatch import REMEDY, batch_window
from dbt.adapters.silt.runs.once import first_time

if TYPE_CHECKING:
    from dbt.adapters.silt.column import SiltColumn
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.relation import SiltRelation


logger = AdapterLogger("Silt")


class IncrementalMethods(metaclass=AdapterMeta):
    """The part of the adapter that builds the statements of incremental models."""

    config: Any
    connections: SiltConnectionManager

    @abstractmethod
    def get_column_schema_from_query(self, sql: str) -> list[SiltColumn]:
        """Returns the columns of a query, which is not run."""

    def valid_incremental_strategies(self) -> list[str]:
        return list(strategies.STRATEGIES)

    def get_incremental_strategy_macro(self, model_context: Mapping[str, Any], strategy: str) -> Any:
        """Returns the macro of a strategy, from the adapter or the project.

        Raises:
            CompilationError: if the macro does not exist.
        """
        strategies.check_strategy(strategy, model_context, self.config.project_name)
        return super().get_incremental_strategy_macro(model_context, strategy)  # type: ignore[misc]

    @available.parse(
        lambda *_, **__: {
            "any": False,
            "added": [],
            "removed": [],
            "retyped": [],
            "added_fields": [],
            "removed_fields": [],
        }
    )
    def schema_changes(self, source: list[SiltColumn], target: list[SiltColumn]) -> dict[str, Any]:
        """Returns the query's differences from its table: `added`, `removed`, and `retyped` with the query's type.

        `added_fields` and `removed_fields` are fields of structs that both have; their columns are also `retyped`.
        """
        old, new = ({each.name.lower(): each for each in columns} for columns in (target, source))
        added = [each for name, each in new.items() if name not in old]
        removed = [each for name, each in old.items() if name not in new]
        retyped = [each for name, each in new.items() if name in old and each.dtype != old[name].dtype]
        return {
            "any": bool(added or removed or retyped),
            "added": added,
            "removed": removed,
            "retyped": retyped,
            "added_fields": _only_in(source, target),
            "removed_fields": _only_in(target, source),
        }

    @available.parse_none
    def name_ignored_columns(self, model: Mapping[str, Any], query: str, target: list[SiltColumn]) -> None:
        """Says once in a command which columns of the query are not written, because the table lacks them."""
        if not first_time(f"ignored columns of {model['unique_id']}"):
            return
        try:
            source = self.get_column_schema_from_query(query)
        except DbtDatabaseError:
            return  # the write fails for the same reason
        known = {CHANGE_TYPE.lower(), *(each.name.lower() for each in target)}
        new = [each.name for each in source if each.name.lower() not in known]
        if new:
            logger.info(
                f"{model['name']}: the table lacks {listed(new)} of the query, so it is not written "
                "(`on_schema_change: ignore`); `append_new_columns` adds new columns to the table"
            )

    @available.parse_none
    def check_first_columns(
        self, config: Mapping[str, Any], strategy: str, query: str, full_refresh: bool
    ) -> str | None:
        """Rejects a configuration that names a column which the query lacks, or a column twice, or that lacks the
        predicates of later runs.

        A full refresh does not read these columns, and may be meant to correct the table: it returns a warning instead.
        It also returns a warning of a misspelt column in `merge_exclude_columns`.
        """
        strategies.check_predicates(config, strategy)
        if not strategies.names_columns(config, strategy):
            return None
        try:
            columns = self.get_column_schema_from_query(query)
        except DbtDatabaseError:
            # The query may depend on its header; if not, the write fails for the same reason.
            return None
        try:
            strategies.check_columns(config, strategy, [each.name for each in columns])
            setting, keys = strategies.keys(config, strategy)
            config_columns.check_expressions(keys, columns, setting, self.get_column_schema_from_query)
            conditions = strategies.conditions(config, strategy, [each.name for each in columns])
            known_as = strategies.aliases(config)
            config_columns.check_conditions(conditions, columns, known_as, self.get_column_schema_from_query)
        except CompilationError as error:
            if not full_refresh:
                raise
            return f"{error.msg}; a run without --full-refresh needs a valid value"
        return strategies.exclusion_warning(config, [each.name for each in columns])

    @available.parse_none
    def exclusion_warning(self, config: Mapping[str, Any], columns: list[SiltColumn]) -> str | None:
        """Returns the warning of a misspelt column in `merge_exclude_columns`."""
        return strategies.exclusion_warning(config, [each.name for each in columns])

    @available.parse(lambda *_, **__: "")
    def changed_keys_clause(self, model: Mapping[str, Any]) -> str:
        """Returns the clause CHANGED KEYS of a model's statement.

        Raises:
            CompilationError: if the model is not a plain SELECT.
        """
        return changed_keys_clause(model)

    @available.parse_list
    def merge_clauses(
        self, config: Mapping[str, Any], columns: list[SiltColumn], query: str, target: str, source: str
    ) -> list[WhenClause]:
        """Returns the WHEN clauses of a model's merge, between the aliases of its two sides."""
        order = self.get_column_schema_from_query(query) if is_by_position(config) else []
        names, given = ([each.name for each in found] for found in (columns, order))
        gone = f"{source}.{quote(CHANGE_TYPE)} = 'delete'" if self.takes_upserts(query) else None
        return merge_clauses(config, Sides(names, given, target, source, gone))

    @available.parse_list
    def not_merged(
        self, config: Mapping[str, Any], columns: list[SiltColumn], added: list[SiltColumn]
    ) -> list[SiltColumn]:
        """Returns the added columns, or fields of columns, that a model's merge does not write, and so does not add.

        Args:
            columns: all columns of the model.
        """
        unwritten = {name.lower() for name in unwritten_columns(config, [each.name for each in columns])}
        return [each for each in added if each.top_level.lower() in unwritten]

    @available.parse(lambda *_, **__: "")
    def changes_call(
        self, model: Mapping[str, Any], relation: Any, this: Any, form: str | None, key: Any, after: int | None
    ) -> str:
        """Returns the SQL that reads the changes of a relation that the model has not consumed.

        Raises:
            CompilationError: if the model cannot consume changes.
        """
        return changes_call(model, relation, this, ChangesOptions(form, tuple(as_list(key)), after))

    @available.parse(lambda *_, **__: False)
    def must_read_all_rows(self, model: Mapping[str, Any], query: str) -> bool:
        """Returns whether the changes that a model would read are missing, so that its table is built again.

        Raises:
            CompilationError: if the model's query is different in a full refresh.
        """
        try:
            self.get_column_schema_from_query(query)
        except DbtDatabaseError as error:
            if not isinstance(error.__cause__, ChangesMissingError):
                return False  # the write fails for the same reason
            check_rebuild(model, error.__cause__)
            logger.info(f"Built again from all rows: {model['name']}: {error.__cause__.problem}")
            return True
        return False

    @available.parse(lambda *_, **__: False)
    def takes_upserts(self, query: str) -> bool:
        """Returns whether the rows of a model's query may be keys to delete, by their `_change_type`."""
        with self.connections.exception_handler("read the model's query"):
            return takes_upserts(query)

    @available
    def quoted_name(self, text: str) -> str:
        """Returns the name that a configuration gives, plain or in quotes of either kind, in backquotes."""
        return config_columns.quoted_name(text)

    @available
    def config_expression(self, text: str) -> str:
        """Returns an expression of the configuration; a name in double quotes gets backquotes."""
        return config_columns.expression(text)

    @available
    def qualified(self, text: str, columns: list[SiltColumn], alias: str, setting: str) -> str:
        """Returns a column or an expression of the configuration, with its columns qualified by an alias.

        Raises:
            CompilationError: if it is neither a column nor an expression over the columns.
        """
        written = config_columns.qualified(text, [each.name for each in columns], alias, setting)
        config_columns.check_expressions([text], columns, setting, self.get_column_schema_from_query)
        return written

    @available
    def qualify_condition(self, condition: str, columns: list[SiltColumn], alias: str) -> str:
        """Returns a condition of the configuration, with the unqualified names of these columns qualified."""
        return config_columns.qualify_condition(condition, [each.name for each in columns], alias)

    @available.parse(lambda *_, **__: "true")
    def batch_window(self, model: Mapping[str, Any], columns: list[SiltColumn], query: str) -> str:
        """Returns the condition that is true for the rows of a microbatch's window."""
        return batch_window(model, columns, self.get_column_schema_from_query, query)

    @available
    def batch_remedy(self) -> str:
        """Returns the remedy for a microbatch that has rows outside of its window."""
        return REMEDY


class SnapshotMethods(metaclass=AdapterMeta):
    """The part of the adapter that names columns in the statements of snapshots."""

    connections: SiltConnectionManager

    @abstractmethod
    def get_column_schema_from_query(self, sql: str) -> list[SiltColumn]:
        """Returns the columns of a query, which is not run."""

    @available.parse(lambda *_: True)
    def reads_all_rows(self) -> bool:
        """Returns whether queries of this command return all their rows, without `--empty` and `--sample`."""
        context = self.connections.invocation.context
        return not (context.empty or context.sample)

    @available.parse_none
    def check_snapshot_strategy(self, strategy: str, macros: Mapping[str, Any]) -> None:
        """Checks that a snapshot's strategy exists."""
        snapshots.check_strategy(strategy, macros)

    @available.parse(lambda _, text, *__: text)
    def snapshot_expression(self, text: str, columns: Sequence[SiltColumn], setting: str) -> str:
        """Returns a column of the configuration in backquotes, or an expression over columns.

        Raises:
            CompilationError: if it is neither a column nor an expression over the columns.
        """
        written = snapshots.expression(text, [each.name for each in columns], setting)
        config_columns.check_expressions([text], columns, setting, self.get_column_schema_from_query)
        return written

    @available.parse(lambda _, texts, *__: texts)
    def snapshot_columns(self, texts: Sequence[str], columns: Sequence[SiltColumn]) -> list[str]:
        """Returns the columns of `check_cols`, in backquotes."""
        return snapshots.compared_columns(texts, [each.name for each in columns])

    @available.parse(lambda _, names: names)
    def snapshot_names(self, names: Mapping[str, str]) -> dict[str, str]:
        """Returns the names of the columns that dbt adds, in backquotes."""
        return snapshots.quoted_names(names)

    @available.parse_none
    def assert_valid_snapshot_target_given_strategy(
        self, relation: SiltRelation, column_names: Mapping[str, str], strategy: Mapping[str, Any]
    ) -> None:
        """Checks that the table has dbt's columns, with names in any case."""
        names = {column: name.lower() for column, name in snapshots.plain_names(column_names).items()}
        super().assert_valid_snapshot_target_given_strategy(  # type: ignore[misc]
            relation, names, strategy
        )


def _only_in(columns: Sequence[SiltColumn], others: Sequence[SiltColumn]) -> list[SiltColumn]:
    """Returns the fields that the other columns lack, of structs that the other columns have."""
    own, theirs = (
        {tuple(map(str.lower, field.path)): field for column in each for field in column.fields}
        for each in (columns, others)
    )
    structs = {path[:-1] for path in theirs}
    return [field for path, field in own.items() if path not in theirs and path[:-1] in structs]

"""Macro API for table definitions: contracts, constraints, and column comments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.events.types import ConstraintNotEnforced
from dbt_common.contracts.constraints import ColumnLevelConstraint, ConstraintType, ModelLevelConstraint
from dbt_common.events.functions import warn_or_error

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.identifiers import quote_if_needed
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.materializations.contracts import (
    Documented,
    all_comments,
    check_contract,
    comment_changes,
    constraint_sql,
    documented_comments,
    says_enforced,
    table_elements,
)
from dbt.adapters.silt.materializations.partitioning import clustering
from dbt.adapters.silt.runs.once import first_time

if TYPE_CHECKING:
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.engine.commands.spark import types
    from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
    from dbt.adapters.silt.engine.kernel.table import clustering as table_clustering
    from dbt.adapters.silt.engine.sql import portable_types
    from dbt.adapters.silt.materializations import definition_changes
    from dbt.adapters.silt.relation import SiltRelation
else:
    types = lazy_module("dbt.adapters.silt.engine.commands.spark.types")
    table_clustering = lazy_module("dbt.adapters.silt.engine.kernel.table.clustering")
    portable_types = lazy_module("dbt.adapters.silt.engine.sql.portable_types")
    definition_changes = lazy_module("dbt.adapters.silt.materializations.definition_changes")


class ContractMethods(metaclass=AdapterMeta):
    """The part of the adapter that defines columns and constraints."""

    connections: SiltConnectionManager
    config: Any

    @abstractmethod
    def _snapshot(self, relation: SiltRelation) -> Snapshot:
        """Returns the current snapshot of the table."""

    CONSTRAINT_SUPPORT: ClassVar = {
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_ENFORCED,
        ConstraintType.primary_key: ConstraintSupport.NOT_ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_ENFORCED,
    }

    @available.parse(lambda *_, **__: [])
    def documentable_names(self, columns: list[SiltColumn]) -> list[str]:
        """Returns the names of columns, and the dotted paths of their nested fields."""
        return list(all_comments(columns))

    @available.parse(lambda *_, **__: {})
    def documented_comments(self, columns: list[SiltColumn], documented: Documented) -> dict[str, str]:
        """Returns the documented comments of columns, by name."""
        return documented_comments(columns, documented)

    @available.parse(lambda *_, **__: [])
    def comment_changes(self, columns: list[SiltColumn], documented: Documented) -> list[str]:
        """Returns the clauses of ALTER TABLE that set the documented comments of a table."""
        return comment_changes(columns, documented)

    @available.parse_none
    def check_contract(self, model: Mapping[str, Any]) -> None:
        """Checks that Spark has the types of a model's contract.

        Raises:
            CompilationError: if Spark lacks a type.
        """
        is_translated = model["config"]["contract"].get("alias_types", True)
        rename: Callable[[str], str] = SiltColumn.translate_type if is_translated else str
        with self.connections.exception_handler(f"read the contract of {model['name']}"):
            _ = self.connections.handle.session  # starts the Spark that parses the types
            check_contract(model["columns"], lambda text: _type_remedy(rename(text)))

    @available
    def with_quotes(self, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Returns the columns of a contract with `quote: true` for each name that SQL needs in quotes."""
        return {
            key: {**column, "quote": column.get("quote") or quote_if_needed(column["name"]) != column["name"]}
            for key, column in columns.items()
        }

    @available.parse(lambda *_, **__: [])
    def table_elements(self, model: Mapping[str, Any], with_comments: bool) -> list[str]:
        """Returns the columns and constraints of a model's contract, as in CREATE TABLE."""
        render: Callable[[dict[str, Any]], str | None] = self.render_raw_model_constraint  # type: ignore[attr-defined]
        own = (model.get("config") or {}).get("enforced_keys")
        enforced = self.config.credentials.enforced_keys if own is None else bool(own)
        return table_elements(model["columns"], model.get("constraints") or [], render, with_comments, enforced)

    @available.parse_list
    def definition_changes(
        self, model: Mapping[str, Any], relation: SiltRelation, added: Sequence[SiltColumn]
    ) -> list[str]:
        """Returns the `alter table` clauses that bring an existing table to its model's definition.

        Args:
            added: the columns, or fields of columns, that the write would add. A column that the definition names is
                added by a clause, because constraints and clustering need it.
        """
        config = model["config"]
        if str(config.get("incremental_apply_config_changes")).lower() == "false":
            return []
        with self.connections.exception_handler(f"compare {relation} with its definition"):
            snapshot = self._snapshot(relation)
            is_enforced = (config.get("contract") or {}).get("enforced")
            elements = self.table_elements(model, with_comments=False) if is_enforced else []
            properties = config.get("tblproperties") or {}
            there = table_clustering.clustered_by(snapshot.schema, snapshot.domains)
            wanted = clustering(config)
            named = definition_changes.named_columns(elements, wanted) if added else set()
            return [
                *(f"add columns ({each.quoted} {each.data_type})" for each in added if each.top_level.lower() in named),
                *definition_changes.of_clustering(there, wanted),
                *definition_changes.alterations(snapshot.schema, snapshot.metadata.configuration, properties, elements),
            ]

    @classmethod
    def render_model_constraint(cls, constraint: ModelLevelConstraint) -> str | None:
        return constraint_sql(constraint)

    @classmethod
    def process_parsed_constraint(
        cls,
        parsed_constraint: ColumnLevelConstraint | ModelLevelConstraint,
        render_func: Callable[[Any], str | None],
    ) -> str | None:
        """Renders constraints as dbt does, but warns only once in a command that keys are not enforced."""
        is_key = cls.CONSTRAINT_SUPPORT.get(parsed_constraint.type) is ConstraintSupport.NOT_ENFORCED
        is_recorded = is_key and not says_enforced(parsed_constraint.expression)
        if is_recorded and parsed_constraint.warn_unenforced and first_time("keys are not enforced"):
            warn_or_error(ConstraintNotEnforced(constraint="primary_key, foreign_key and unique", adapter="silt"))
        return render_func(parsed_constraint)

    @available.parse(lambda *_, **__: False)
    def first_time(self, subject: str) -> bool:
        """Returns whether this is the command's first call for the subject."""
        return first_time(subject)


def _type_remedy(text: str) -> str | None:
    """Returns the remedy for a type that Spark does not have, else None."""
    try:
        types.column_type(text)
    except StatementSyntaxError:
        return portable_types.type_remedy(text) or portable_types.TYPES
    except UnsupportedFeatureError:
        # A view may have the type; a table refuses it by its own error.
        return None
    return None

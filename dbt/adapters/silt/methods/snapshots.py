"""The methods of `adapter` for snapshots: the names of columns in their statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available

from dbt.adapters.silt.materializations import snapshots

if TYPE_CHECKING:
    from dbt.adapters.silt.column import SiltColumn
    from dbt.adapters.silt.relation import SiltRelation


class SnapshotMethods(metaclass=AdapterMeta):
    """The part of the adapter that names columns in the statements of snapshots."""

    @available.parse(lambda _, text, *__: text)
    def snapshot_expression(self, text: str, columns: Sequence[SiltColumn], setting: str) -> str:
        """Returns a column of the configuration in backquotes, or an expression over columns."""
        return snapshots.expression(text, [each.name for each in columns], setting)

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

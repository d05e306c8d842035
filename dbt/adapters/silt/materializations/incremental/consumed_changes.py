"""Writes the calls of `silt_changes` in the SQL of incremental models, which consume changes once (decision 0087)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.materializations.incremental.config_columns import quoted_name

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.sql.query import references
else:
    references = lazy_module("dbt.adapters.silt.engine.sql.query.references")

CHANGE_TYPE = "_change_type"
_UPSERTS = "upserts"
_STRATEGIES = ("append", "merge")


@dataclass(frozen=True)
class ChangesOptions:
    """The arguments of the macro `silt_changes` besides its relation.

    Attributes:
        form: `upserts`, or None for every change.
        key: the columns of the key of the upserts.
        after: the version after which a table begins that has consumed no changes, or None for all rows.
    """

    form: str | None = None
    key: tuple[str, ...] = ()
    after: int | None = None


def changes_call(model: Mapping[str, Any], relation: Any, this: Any, options: ChangesOptions) -> str:
    """Returns the SQL that reads the changes of a relation that the model has not consumed.

    With `--empty`, the SQL returns no row and consumes nothing. In a unit test, the rows that the test gives are the
    changes.

    Args:
        relation: the relation of a `ref` or `source`.
        this: the relation of the model.

    Raises:
        CompilationError: if the model is not incremental, is sampled, or has a strategy that cannot consume changes,
            if the relation is ephemeral or files, or if the options are invalid.
    """
    if model.get("resource_type") == "unit_test":
        return str(relation)
    _check_model(model, options)
    if not hasattr(relation, "identifier"):
        raise CompilationError(f"`silt_changes` needs a relation, as from `ref` or `source`, not {relation!r}")
    if getattr(relation, "is_cte", False):
        raise CompilationError(
            f"`silt_changes` needs a table, and `{relation.identifier}` is ephemeral: read the tables that it reads"
        )
    if getattr(relation, "external", None):
        raise CompilationError(
            f"`silt_changes` needs a table, and `{relation.identifier}` is files, which have no versions: append them "
            "to a table first"
        )
    if getattr(relation, "event_time_filter", None) is not None:
        raise CompilationError(
            "`silt_changes` cannot read a sample of the changes: leave out `--sample`, or exclude the model"
        )
    arguments = [_named(relation)]
    is_empty = getattr(relation, "limit", None) == 0
    if not is_empty:
        arguments.append(f"consumer => {_named(this)}")
    if options.after is not None:
        arguments.append(f"after => {int(options.after)}")
    if options.form:
        key = ", ".join(map(quoted_name, options.key))
        arguments.append(f"as => '{_UPSERTS}', key => {string_literal(key)}")
    call = f"silt_changes({', '.join(arguments)})"
    return f"(select * from {call} where false)" if is_empty else call


def check_rebuild(model: Mapping[str, Any], reason: SiltError) -> None:
    """Checks that a model may be built again from all rows in a run without `--full-refresh`.

    Raises:
        CompilationError: if the config is `full_refresh: false`, or the query depends on `is_incremental()`.
    """
    name = model.get("name")
    if (model.get("config") or {}).get("full_refresh") is False:
        raise CompilationError(f"`{name}` must be built again, but its config is `full_refresh: false`: {reason}")
    if "is_incremental" in (model.get("raw_code") or ""):
        raise CompilationError(
            f"`{name}` must be built again, but its query depends on `is_incremental()`: run it with `--full-refresh`. "
            f"{reason}"
        )


def takes_upserts(query: str) -> bool:
    """Returns whether a query reads the newest row of each changed key, so that its rows may be deleted keys."""
    calls = (reference.difference for reference in references.table_references(query))
    return any(call is not None and call.keys and call.consumer is not None for call in calls)


def _check_model(model: Mapping[str, Any], options: ChangesOptions) -> None:
    config = model.get("config") or {}
    name = model.get("name")
    materialized = config.get("materialized")
    if materialized != "incremental":
        raise CompilationError(
            f"`silt_changes` is for incremental models: `{name}` is materialized as {materialized}, which cannot "
            "record the changes that it has read"
        )
    strategy = config.get("incremental_strategy") or "default"
    if strategy == "default":
        strategy = "merge" if config.get("unique_key") else "append"
    if strategy not in _STRATEGIES:
        raise CompilationError(
            f"`silt_changes` in `{name}` needs the incremental strategy append or merge, not `{strategy}`"
        )
    if options.form not in (None, _UPSERTS):
        raise CompilationError(f"`as` of `silt_changes` in `{name}` is '{_UPSERTS}' or missing, not {options.form!r}")
    if options.form == _UPSERTS and not options.key:
        raise CompilationError(
            f"`silt_changes(..., as='{_UPSERTS}')` in `{name}` needs a key: set `unique_key`, or give `key`"
        )
    if options.form == _UPSERTS and strategy != "merge":
        raise CompilationError(f"`silt_changes(..., as='{_UPSERTS}')` in `{name}` needs the strategy merge")


def _named(relation: Any) -> str:
    parts = (relation.database, relation.schema, relation.identifier)
    return string_literal(".".join(quote(part) for part in parts if part))

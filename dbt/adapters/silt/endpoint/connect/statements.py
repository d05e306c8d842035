"""Runs commands of Spark Connect through the engine: SQL, writes of DataFrames, merges and temporary views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import base_pb2 as pb
from pyspark.sql.connect.proto import commands_pb2 as pc
from pyspark.sql.connect.proto import expressions_pb2 as pe
from pyspark.sql.connect.proto.catalog_pb2 import Catalog
from pyspark.sql.connect.types import pyspark_types_to_proto_types
from pyspark.sql.pandas.types import from_arrow_schema

from dbt.adapters.silt.endpoint.connect import catalog_calls
from dbt.adapters.silt.endpoint.connect.expressions import bound, column_of, sql_of
from dbt.adapters.silt.endpoint.connect.plans import Plans, fetched, ipc_stream, local
from dbt.adapters.silt.engine.commands.spark import frames
from dbt.adapters.silt.engine.commands.spark.file_formats import check_table_format
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote, split_name, string_literal
from dbt.adapters.silt.engine.sql.ast import Query, Statement
from dbt.adapters.silt.engine.statements.steps.context import Result

_OBSERVED: Final = "silt"
"""The name of the metrics that tell what a statement has changed."""

_MODES: Final = {
    pc.WriteOperation.SAVE_MODE_APPEND: "append",
    pc.WriteOperation.SAVE_MODE_OVERWRITE: "overwrite",
    pc.WriteOperation.SAVE_MODE_IGNORE: "ignore",
}
_OPTIONS: Final = {
    "mergeschema": "merge_schema",
    "overwriteschema": "overwrite_schema",
    "replacewhere": "replace_where",
    "usermetadata": "user_metadata",
}
_SOURCE: Final = "__silt_source"


def runs(command: pc.Command) -> bool:
    """Returns whether the engine runs a command; Spark runs the others."""
    kind = command.WhichOneof("command_type")
    if kind == "write_operation":
        return bool(command.write_operation.WhichOneof("save_type") == "table")
    return kind in _RUN


def run(plans: Plans, command: pc.Command) -> list[pb.ExecutePlanResponse]:
    """Runs a command, and returns the answers to the client.

    Raises:
        SiltError: see `kernel.errors`.
    """
    kind = str(command.WhichOneof("command_type"))
    return _RUN[kind](plans, getattr(command, kind))


def run_call(plans: Plans, call: Catalog) -> list[pb.ExecutePlanResponse]:
    """Runs a call of `spark.catalog`, and returns the answers with its rows; raises as `run`."""
    rows = catalog_calls.answer(plans.session, call, only_reads=False)
    assert rows is not None
    return _rows_of(rows)


def _rows_of(table: pa.Table) -> list[pb.ExecutePlanResponse]:
    """Returns the answers that contain rows."""
    schema = pyspark_types_to_proto_types(from_arrow_schema(table.schema))
    batch = pb.ExecutePlanResponse.ArrowBatch(row_count=table.num_rows, data=ipc_stream(table.combine_chunks()))
    return [pb.ExecutePlanResponse(schema=schema), pb.ExecutePlanResponse(arrow_batch=batch)]


def run_text(plans: Plans, text: str, statement: Statement) -> list[pb.ExecutePlanResponse]:
    """Runs a statement that is not a query, and returns the answers with its rows; raises as `run`."""
    result = plans.session.execute(text, statement)
    return [*_metrics(result.outcome), *_rows_of(_rows(plans, result))]


def _sql(plans: Plans, command: pc.SqlCommand) -> list[pb.ExecutePlanResponse]:
    text = _text(plans, command)
    statement = plans.session.warehouse.parsed(text)
    result = plans.session.execute(text, statement)
    is_query, rows = isinstance(statement, Query), result.dataframe
    relation = plans.relation(rows) if is_query and rows is not None else local(_rows(plans, result))
    done = pb.ExecutePlanResponse.SqlCommandResult(relation=relation)
    return [*_metrics(result.outcome), pb.ExecutePlanResponse(sql_command_result=done)]


def _rows(plans: Plans, result: Result) -> pa.Table:
    """Returns the rows of a result, computed now: they are few."""
    is_empty = result.dataframe is None and result.outcome is None
    return pa.table({}) if is_empty else fetched(result.rows(plans.session.warehouse.spark))


def _text(plans: Plans, command: pc.SqlCommand) -> str:
    """Returns the text of a command, with its arguments; DataFrames among them become temporary views."""
    if not command.HasField("input"):
        return bound(command.sql, command)
    root = command.input
    if root.WhichOneof("rel_type") == "with_relations":
        for each in root.with_relations.references:
            alias = each.subquery_alias
            plans.session.warehouse.put_temporary_view(plans.frame(alias.input), alias.alias, replace=True)
        root = root.with_relations.root
    if root.WhichOneof("rel_type") != "sql":
        raise UnsupportedStatementError("a command of SQL contains a plan that is not SQL", remedy="Send the SQL text")
    return bound(root.sql.query, root.sql)


def _metrics(outcome: Outcome | None) -> list[pb.ExecutePlanResponse]:
    """Returns the answer with the numbers of changed rows."""
    if outcome is None:
        return []
    counts = {
        "version": outcome.version,
        "num_inserted_rows": outcome.rows_inserted,
        "num_updated_rows": outcome.rows_updated,
        "num_deleted_rows": outcome.rows_deleted,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    values = [pe.Expression.Literal(long=count) for count in known.values()]
    metrics = pb.ExecutePlanResponse.ObservedMetrics(name=_OBSERVED, keys=list(known), values=values)
    return [pb.ExecutePlanResponse(observed_metrics=[metrics])]


def _write(plans: Plans, write: pc.WriteOperation) -> list[pb.ExecutePlanResponse]:
    """Runs `saveAsTable`, which matches columns by name, or `insertInto`, which matches them by position."""
    table = write.table.table_name
    check_table_format(plans.session.warehouse.spark, write.source.lower(), table)
    if write.bucket_by.num_buckets or write.sort_column_names:
        raise UnsupportedStatementError("a table of a warehouse has no buckets", table=table, remedy="Leave them out")
    frame = plans.frame(write.input)
    mode = _MODES.get(write.mode, "error")
    if write.table.save_method == write.table.TABLE_SAVE_METHOD_INSERT_INTO:
        verb = "overwrite" if mode == "overwrite" else "into"
        return _with_view(plans, frame, lambda view: f"insert {verb} {table} select * from {view}")
    options = _options(write.options, table)
    if write.partitioning_columns:
        options["partition_by"] = list(write.partitioning_columns)
    if write.clustering_columns:
        options["cluster_by"] = list(write.clustering_columns)
    return _metrics(plans.session.write(frame, table, mode, **options))


def _write_v2(plans: Plans, write: pc.WriteOperationV2) -> list[pb.ExecutePlanResponse]:
    """Runs `writeTo`."""
    table, modes = write.table_name, pc.WriteOperationV2
    check_table_format(plans.session.warehouse.spark, write.provider.lower(), table)
    frame = plans.frame(write.input)
    options = _options(write.options, table)
    if write.mode == modes.MODE_APPEND:
        return _metrics(plans.session.write(frame, table, "append", **options))
    if write.mode == modes.MODE_OVERWRITE:
        options["replace_where"] = sql_of(write.overwrite_condition)
        return _metrics(plans.session.write(frame, table, "overwrite", **options))
    verb = _CREATES.get(write.mode)
    if verb is None:
        raise UnsupportedStatementError(
            "`overwritePartitions` is not supported here",
            table=table,
            remedy="Use `overwrite(condition)`, or `insert overwrite` with `spark.sql.sources.partitionOverwriteMode`",
        )
    return _with_view(plans, frame, lambda view: f"{verb} table {table} {_table_parts(write)} as select * from {view}")


_CREATES: Final = {
    pc.WriteOperationV2.MODE_CREATE: "create",
    pc.WriteOperationV2.MODE_REPLACE: "replace",
    pc.WriteOperationV2.MODE_CREATE_OR_REPLACE: "create or replace",
}


def _table_parts(write: pc.WriteOperationV2) -> str:
    parts = ["using delta"]
    if write.partitioning_columns:
        parts.append(f"partitioned by ({', '.join(map(sql_of, write.partitioning_columns))})")
    if write.clustering_columns:
        names = (".".join(map(quote, split_name(column))) for column in write.clustering_columns)
        parts.append(f"cluster by ({', '.join(names)})")
    if write.table_properties:
        pairs = (f"{string_literal(key)} = {string_literal(value)}" for key, value in write.table_properties.items())
        parts.append(f"tblproperties ({', '.join(pairs)})")
    return " ".join(parts)


def _merge(plans: Plans, merge: pc.MergeIntoTableCommand) -> list[pb.ExecutePlanResponse]:
    """Runs `mergeInto`, as the MERGE statement that means the same."""
    source = merge.source_table_plan
    alias = source.subquery_alias.alias if source.WhichOneof("rel_type") == "subquery_alias" else _SOURCE
    groups = {
        "matched": merge.match_actions,
        "not matched": merge.not_matched_actions,
        "not matched by source": merge.not_matched_by_source_actions,
    }
    clauses = [_clause(when, each.merge_action) for when, actions in groups.items() for each in actions]
    schema = "with schema evolution " if merge.with_schema_evolution else ""
    condition, frame = sql_of(merge.merge_condition), plans.frame(source)
    return _with_view(
        plans,
        frame,
        lambda view: (
            f"merge {schema}into {merge.target_table_name} using {view} as {quote(alias)} on {condition}\n"
            + "\n".join(clauses)
        ),
    )


def _clause(when: str, action: pe.MergeAction) -> str:
    kinds, pairs = pe.MergeAction, [(column_of(each.key), sql_of(each.value)) for each in action.assignments]
    also = f" and {sql_of(action.condition)}" if action.HasField("condition") else ""
    columns, values = ", ".join(key for key, _ in pairs), ", ".join(value for _, value in pairs)
    done = {
        kinds.ACTION_TYPE_DELETE: "delete",
        kinds.ACTION_TYPE_INSERT: f"insert ({columns}) values ({values})",
        kinds.ACTION_TYPE_INSERT_STAR: "insert *",
        kinds.ACTION_TYPE_UPDATE: "update set " + ", ".join(f"{key} = {value}" for key, value in pairs),
        kinds.ACTION_TYPE_UPDATE_STAR: "update set *",
    }
    return f"when {when}{also} then {done[action.action_type]}"


def _with_view(plans: Plans, frame: DataFrame, text: Callable[[str], str]) -> list[pb.ExecutePlanResponse]:
    """Runs a statement that names the rows of a DataFrame."""
    name = f"__silt_rows_{plans.session.warehouse.settings.clock.new_id()}"
    with frames.frame_view(frame, name):
        return _metrics(plans.session.execute(text(quote(name))).outcome)


def _options(given: Mapping[str, str], table: str) -> dict[str, Any]:
    """Returns the options of a write, as the engine names them.

    Raises:
        UnsupportedStatementError: if an option is unknown.
    """
    options: dict[str, Any] = {}
    for name, value in given.items():
        known = _OPTIONS.get(name.lower())
        if known is None:
            raise UnsupportedStatementError(f"the option `{name}` of a write is not supported", table=table)
        options[known] = value.lower() == "true" if known.endswith("schema") else value
    return options


def _view(plans: Plans, command: pc.CreateDataFrameViewCommand) -> list[pb.ExecutePlanResponse]:
    """Runs `createTempView` and its variants."""
    frame = plans.frame(command.input)
    if command.is_global:
        (frame.createOrReplaceGlobalTempView if command.replace else frame.createGlobalTempView)(command.name)
    else:
        plans.session.warehouse.put_temporary_view(frame, command.name, replace=command.replace)
    return []


_RUN: Final[Mapping[str, Callable[[Plans, Any], list[pb.ExecutePlanResponse]]]] = {
    "sql_command": _sql,
    "write_operation": _write,
    "write_operation_v2": _write_v2,
    "merge_into_table_command": _merge,
    "create_dataframe_view": _view,
}

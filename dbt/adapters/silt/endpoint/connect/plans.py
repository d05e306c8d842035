"""Replaces the names of a warehouse in plans of Spark Connect by relations over pinned snapshots.

All names in a plan are pinned in one consistent cut. A relation that the endpoint has returned for a query is pinned
already, and is passed on unchanged, so that a query which a client runs twice returns the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import grpc
import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import base_pb2 as pb
from pyspark.sql.connect.proto import expressions_pb2 as pe
from pyspark.sql.connect.proto import relations_pb2 as pr

from dbt.adapters.silt.endpoint.connect import catalog_calls, expressions
from dbt.adapters.silt.endpoint.connect.backend import Failed, encoded, forget_oldest
from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import string_literal
from dbt.adapters.silt.engine.sql.ast import Query, Statement
from dbt.adapters.silt.runs.fetch import fetchable

_TRAVEL: Final = {"versionasof": "version as of {}", "timestampasof": "timestamp as of {}"}
_NAMING: Final = re.compile(r"(?i)\bselect\b|\.\s*[\w`]+\s*\(")
_MOST_PINNED: Final = 10_000
_MOST_BYTES: Final = 512 * 1024 * 1024
"""The longest plan, as in Spark."""


@dataclass
class Plans:
    """The plans of a session."""

    session: Session
    _pinned: dict[str, None] = field(default_factory=dict)

    def resolve(self, message: Message) -> bool:
        """Replaces, in place, the relations in a message that name tables; returns whether there were any.

        Raises:
            SiltError: if a name cannot be resolved.
        """
        found = list(messages(message))
        named = [each for each in found if isinstance(each, pr.Relation) and self._is_named(each)]
        texts = [each for each in found if isinstance(each, pe.Expression.ExpressionString) and _names(each.expression)]
        calls = [each for each in named if each.WhichOneof("rel_type") == "catalog"]
        queries = [each for each in named if each.WhichOneof("rel_type") != "catalog"]
        if not named and not texts:
            return False
        with self.session.busy():
            rows, expressed = self.session.warehouse.resolved(
                [self._query(each) for each in queries], [each.expression for each in texts]
            )
            answers = [catalog_calls.answer(self.session, each.catalog) for each in calls]
        for relation, frame in zip(queries, rows, strict=True):
            _replace(relation, self.relation(frame))
        for text, expression in zip(texts, expressed, strict=True):
            text.expression = expression
        for relation, answer in zip(calls, answers, strict=True):
            if answer is not None:
                _replace(relation, local(answer))
        return True

    def relation(self, frame: DataFrame) -> pr.Relation:
        """Returns the relation of a DataFrame of this session's engine, pinned as it is."""
        relation = pr.Relation()
        relation.CopyFrom(spark_seams.relation_of(frame))
        for each in relations(relation):
            each.common.ClearField("plan_id")  # a number of this process, not of the client
            if each.WhichOneof("rel_type") == "sql":
                self._pinned[each.sql.query] = None
        forget_oldest(self._pinned, _MOST_PINNED)
        return relation

    def pin_as(self, other: Plans) -> None:
        """Takes over the relations that another session has returned, of which this session is a clone."""
        self._pinned.update(other._pinned)

    def frame(self, relation: pr.Relation) -> DataFrame:
        """Returns the rows of a client's relation, whose names are resolved in place."""
        self.resolve(relation)
        frame: DataFrame = spark_seams.frame_of(self.session.warehouse.spark, relation)
        return frame

    def statement(self, plan: pb.Plan) -> tuple[str, Statement] | None:
        """Returns the text and the statement of a plan that is only an SQL text, but not a query, as some drivers
        send statements.
        """
        if plan.WhichOneof("op_type") != "root" or plan.root.WhichOneof("rel_type") != "sql":
            return None
        if self._is_pinned(plan.root.sql.query):
            return None
        text = expressions.bound(plan.root.sql.query, plan.root.sql)
        with self.session.busy():  # EXECUTE IMMEDIATE evaluates its expression
            statement = self.session.warehouse.parsed(text)
        return None if isinstance(statement, Query) else (text, statement)

    def _is_named(self, relation: pr.Relation) -> bool:
        kind = relation.WhichOneof("rel_type")
        if kind == "sql":
            return not self._is_pinned(relation.sql.query)
        return kind == "catalog" or (kind == "read" and relation.read.HasField("named_table"))

    def _is_pinned(self, text: str) -> bool:
        """Returns whether the endpoint has returned a text.

        Raises:
            InvalidStatementError: if its views no longer exist: other rows would be wrong.
        """
        if text in self._pinned and not self.session.warehouse.still_reads(text):
            raise InvalidStatementError(
                "the session no longer keeps the versions of the tables that this query has read",
                remedy="Run the query again with `spark.sql`, or read the table with `spark.table`",
            )
        return text in self._pinned

    def _query(self, relation: pr.Relation) -> str:
        if relation.WhichOneof("rel_type") == "read":
            return _of_table(relation.read)
        text = expressions.bound(relation.sql.query, relation.sql)
        statement = self.session.warehouse.parsed(text)
        if not isinstance(statement, Query):
            raise UnsupportedStatementError(
                f"a statement that is not a query cannot be a part of a plan: {text[:80]}",
                remedy="Send it as a command of its own, as `spark.sql` does",
            )
        return statement.text


def _names(expression: str) -> bool:
    """Returns whether an expression may name a table, in a subquery, or a function of a schema."""
    return _NAMING.search(expression) is not None


def _of_table(read: pr.Read) -> str:
    """Returns the query that reads a table, at the version that its options name.

    Raises:
        UnsupportedStatementError: if it is a stream, or has other options.
    """
    table = read.named_table
    if read.is_streaming:
        raise UnsupportedStatementError(
            "a table of a warehouse cannot be read as a stream here",
            table=table.unparsed_identifier,
            remedy='Use `spark.readStream.format("silt")` in a program with its own Spark',
        )
    travel = ""
    for name, value in table.options.items():
        if name.lower() not in _TRAVEL:
            raise UnsupportedStatementError(
                f"the option `{name}` of a read is not supported",
                table=table.unparsed_identifier,
                remedy="Leave it out",
            )
        number = int(value) if name.lower() == "versionasof" and value.isdigit() else string_literal(value)
        travel = " " + _TRAVEL[name.lower()].format(number)
    return f"select * from {table.unparsed_identifier}{travel}"


def local(rows: pa.Table) -> pr.Relation:
    """Returns a relation that contains its rows."""
    return pr.Relation(local_relation=pr.LocalRelation(data=ipc_stream(rows)))


def fetched(frame: DataFrame) -> pa.Table:
    """Returns the rows of a DataFrame, which are computed now."""
    return fetchable(frame, local_times=False).toArrow() if frame.columns else pa.table({})


def ipc_stream(rows: pa.Table) -> bytes:
    """Returns rows as a stream of Arrow with at least one batch, which PySpark expects."""
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in rows.schema], schema=rows.schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        for batch in rows.to_batches() or [nothing]:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def relations(message: Message) -> Iterator[pr.Relation]:
    """Yields the relations in a message, the outer before the inner."""
    return (each for each in messages(message) if isinstance(each, pr.Relation))


def messages(message: Message) -> Iterator[Any]:
    """Yields a message and all messages in it; a deep plan needs no deep stack."""
    left = [message]
    while left:
        here = left.pop()
        yield here
        for described, value in here.ListFields():
            if described.message_type is None:
                continue
            if described.message_type.GetOptions().map_entry:
                values = described.message_type.fields_by_name["value"]
                left += list(value.values()) if values.message_type is not None else []
            elif isinstance(value, Message):
                left.append(value)
            else:
                left += list(value)


def _replace(relation: pr.Relation, by: pr.Relation) -> None:
    """Replaces a relation in place; it keeps the number by which columns of the plan name it."""
    common = type(relation.common)()
    common.CopyFrom(relation.common)
    relation.CopyFrom(by)
    relation.common.CopyFrom(common)


def opened(message: Message) -> list[pb.Plan]:
    """Replaces compressed plans in a message by their contents, in place, and returns these plans.

    Raises:
        Failed: if a plan cannot be decompressed, or is too long.
    """
    compressed = [
        each
        for each in messages(message)
        if isinstance(each, pb.Plan) and each.WhichOneof("op_type") == "compressed_operation"
    ]
    for plan in compressed:
        packed = plan.compressed_operation
        try:
            with pa.CompressedInputStream(pa.BufferReader(packed.data), "zstd") as stream:
                content = stream.read(_MOST_BYTES + 1)
            if len(content) > _MOST_BYTES:
                raise unreadable(f"it has more than {_MOST_BYTES:,} bytes")
            is_root = packed.op_type == packed.OP_TYPE_RELATION
            (plan.root if is_root else plan.command).ParseFromString(content)
        except (OSError, DecodeError) as error:
            raise unreadable(str(error)) from error
    return compressed


def close(plans: list[pb.Plan]) -> None:
    """Compresses the plans that `opened` has returned again: as they are now, they may be too large for a message."""
    for plan in plans:
        is_root = plan.WhichOneof("op_type") == "root"
        content = encoded(plan.root if is_root else plan.command)
        packed = pb.Plan.CompressedOperation(
            data=pa.compress(content, "zstd", asbytes=True), compression_codec=pb.COMPRESSION_CODEC_ZSTD
        )
        packed.op_type = packed.OP_TYPE_RELATION if is_root else packed.OP_TYPE_COMMAND
        plan.compressed_operation.CopyFrom(packed)


def unreadable(why: str) -> Failed:
    """Returns the failure of a request that cannot be read, in the words of Spark."""
    text = f"[CONNECT_INVALID_PLAN.CANNOT_PARSE] Cannot decompress or parse the input plan ({why})"
    return Failed(grpc.StatusCode.INVALID_ARGUMENT, text)

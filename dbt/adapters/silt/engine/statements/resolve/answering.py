"""Answers, in expanded queries, the SELECTs that the logs of their tables can answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.schema import DataType, PrimitiveType
from dbt.adapters.silt.engine.statements.resolve import metadata_answers
from dbt.adapters.silt.engine.statements.resolve.expansion import ExpandedQuery, Table, View
from dbt.adapters.silt.engine.statements.resolve.metadata_answers import Answer
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace
from dbt.adapters.silt.engine.statements.resolve.reads import Read
from dbt.adapters.silt.engine.statements.resolve.time_travel import constant

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Answering:
    """Answers from the snapshots of a consistent cut; each view's query is answered once, however often it is named.

    Args:
        session: evaluates expressions of literals.
        time_zone: time zone of the session, for literals without a time zone.
        cut: the newest snapshot of each table.
        reads: list to which the reads are added on which the answers depend.
    """

    session: Namespace
    time_zone: str
    cut: Mapping[DeltaLog, Snapshot]
    reads: list[Read]
    _known: dict[int, ExpandedQuery] = field(default_factory=dict, init=False, repr=False)

    def query(self, node: ExpandedQuery) -> ExpandedQuery:
        """Returns the query, and the queries of its views, with answers wherever the logs alone suffice.

        Args:
            node: the query; the caller must keep it alive as long as this instance.
        """
        if id(node) not in self._known:
            self._known[id(node)] = self._answered(node)
        return self._known[id(node)]

    def _answered(self, node: ExpandedQuery) -> ExpandedQuery:
        answers = self._answers(node)
        if answers:
            node = node.with_edits(metadata_answers.edits(answers))
        children = {
            reference: replace(child, query=self.query(child.query)) if isinstance(child, View) else child
            for reference, child in node.children.items()
        }
        return replace(node, children=children)

    def _answers(self, node: ExpandedQuery) -> list[Answer]:
        text = node.text.text
        answers = []
        for question in metadata_answers.questions(text, node.relations(self.cut), self.time_zone):
            table = node.children[question.reference]
            assert isinstance(table, Table)
            snapshot = table.snapshot(self.cut)
            found = metadata_answers.answer(question, text.sql, snapshot, table.log.store)
            if found is not None:
                answers.append(self._folded(found) if question.is_scalar else found)
                nothing = snapshot.files.slice(0, 0)
                self.reads.append(Read(table.log, snapshot, nothing, found.read, is_latest=table.fixed is None))
        return answers

    def _folded(self, answer: Answer) -> Answer:
        """Returns a scalar answer as a literal, which can rule out files; Spark folds it without a job."""
        if answer.question.items[0].is_one_call:
            return answer
        spark = self.session.spark
        (member,) = kernel_schema(spark.sql(f"select {answer.sql} as value").schema)
        try:
            value = self._value(answer.sql, member.type)
        except (OverflowError, ValueError):  # a time outside the years 1 to 9999
            return answer
        text = metadata_answers.literal(value, member.type)
        return answer if text is None else replace(answer, sql=text)

    def _value(self, sql: str, data_type: DataType) -> Any:
        """Returns the value of an expression of literals."""
        if data_type != PrimitiveType("timestamp"):
            return self.session.spark.sql(f"select {sql}").collect()[0][0]
        # A Python value would be converted by the machine's time zone.
        value = constant(self.session, f"unix_micros({sql})", "bigint")
        return _EPOCH + timedelta(microseconds=value) if isinstance(value, int) else None

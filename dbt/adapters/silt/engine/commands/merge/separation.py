"""Separates the source rows of a MERGE that fail row tests, before the others are merged.

The rows are stored once, in folders by the tests that they fail, and the MERGE reads the stored rows that pass: a row
is judged once, whatever happens to the tasks. This is exact for a MERGE that writes each row of its source unchanged; a
row that would be made from both sides is judged by nobody before it is written, so such a MERGE is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.commands.merge.plan import MergePlan
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.spark.types import query_schema
from dbt.adapters.silt.engine.commands.target import Target
from dbt.adapters.silt.engine.commands.writing import files, store_assignment
from dbt.adapters.silt.engine.commands.writing.checks import table_checks
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.schema import nullable
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.query.column_names import column_names
from dbt.adapters.silt.engine.sql.tokens import tokenize

_REMEDY: Final = (
    "Write every column of the source unchanged (UPDATE SET * and INSERT *, without conditions), or let the audits "
    "refuse the statement, or replace the rows by key: INSERT INTO ... REPLACE USING, in dbt the strategy delete+insert"
)


def separates(target: Target, source: DataFrame, plan: MergePlan) -> bool:
    """Returns whether rows of the source can be left out.

    Raises:
        UnsupportedStatementError: if audits ask for it, and the MERGE writes other rows than those of its source; the
            table's own rules then refuse such rows.
    """
    routing = [each for each in target.tests if each.routes]
    problem = _problem(target, source, plan) if routing else None
    if problem is not None and not all(each.constraint for each in routing):
        raise UnsupportedStatementError(
            f"the rows of this MERGE cannot be quarantined, because {problem}", table=target.name, remedy=_REMEDY
        )
    return bool(routing) and problem is None


def separated(spark: SparkSession, target: Target, source: DataFrame) -> tuple[DataFrame, Written]:
    """Returns the source's rows that pass, and the stored rows, whose routed rows fail.

    Raises:
        DataRejectedError: as `files.write`.
    """
    snapshot, name = target.snapshot, target.name
    given = store_assignment.assign(source, snapshot.schema, name, by_name=True)
    checks = (*given.checks, *table_checks(snapshot.schema, snapshot.properties, name))
    written = files.write_to(target, given.df, snapshot.metadata, checks, routable="true")
    stored = scan.read(spark, target.log, target.snapshot, files_table(written.adds))
    return stored.select(*map(quote, source.columns)), written


def _problem(target: Target, source: DataFrame, plan: MergePlan) -> str | None:
    """Returns why the label of a row does not follow from the source's row alone; None if it does."""
    schema = target.snapshot.schema
    own = {each.name.lower(): nullable(each.type) for each in schema}
    given = {each.name.lower(): nullable(each.type) for each in query_schema(source)}
    if any(each.routes and not each.is_repeatable for each in target.tests):
        return "an audit may have another verdict on the same row each time"
    if plan.schema_evolution or len(source.columns) != len(given) or own != given:
        return "the columns and types of the source are not those of the table"
    if any(each.is_computed for each in schema):
        return "the table has columns that are computed when a row is written"
    if {each.kind for each in plan.clauses} != {ast.MatchKind.MATCHED, ast.MatchKind.NOT_MATCHED}:
        return "it does not write every row of its source, or changes other rows"
    if not all(_is_unchanged(each, plan, schema.names) for each in plan.clauses):
        return "it does not write each row of the source unchanged"
    return None


def _is_unchanged(clause: ast.MergeClause, plan: MergePlan, names: Sequence[str]) -> bool:
    """Returns whether a clause writes the source's value into each column, for all rows that it gets."""
    if clause.condition is not None or clause.action.verb is ast.RowVerb.DELETE:
        return False
    if isinstance(clause.action, (ast.UpdateAll, ast.InsertAll)):
        return True
    wanted = {each.lower() for each in names}
    pairs = list(_assigned(clause.action, names))
    return {column[-1].lower() for column, _ in pairs} == wanted and all(
        len(column) <= 2 and _is_column(value, plan.source_alias, column[-1]) for column, value in pairs
    )


def _assigned(action: ast.MergeAction, names: Sequence[str]) -> Iterator[tuple[ast.Name, str]]:
    if isinstance(action, ast.UpdateSet):
        yield from ((each.column, each.value) for each in action.assignments)
    elif isinstance(action, ast.InsertValues):
        columns = action.columns or tuple((name,) for name in names)
        yield from zip(columns, action.values, strict=False)


def _is_column(value: str, alias: str, name: str) -> bool:
    """Returns whether an expression is the source's column of that name."""
    tokens = tokenize(value)
    found = list(column_names(tokens))
    if len(found) != 1 or (found[0].start, found[0].end) != (tokens[0].start, tokens[-2].end):
        return False
    return tuple(each.lower() for each in found[0].parts) == (alias.lower(), name.lower())

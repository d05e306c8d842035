"""Turns `SET column = value` of UPDATE and MERGE into columns of the table.

A value is converted by the rules of store assignment (`conversion`). A value that its column cannot hold is recorded in
an additional column, which a check reads while the rows are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema, spark_type
from dbt.adapters.silt.engine.commands.writing import numbering, rules
from dbt.adapters.silt.engine.commands.writing.checks import Check, counted, shown
from dbt.adapters.silt.engine.commands.writing.conversion import Conversion, conversion, lacking, over
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import DataType, StructField, StructType, nullable
from dbt.adapters.silt.engine.kernel.table.text_lengths import declared_type
from dbt.adapters.silt.engine.sql.ast import Assignment, Name

_LOST = "__silt_lost_"


@dataclass(frozen=True)
class AssignedColumn:
    """A column, or a field of a struct column, and the value that it is set to.

    Args:
        path: the fields down to the assigned field, beginning with the table's column.
        value: the SQL of an expression.
    """

    path: tuple[StructField, ...]
    value: str

    @property
    def column(self) -> StructField:
        return self.path[0]

    @property
    def place(self) -> StructField:
        return self.path[-1]

    @property
    def type(self) -> DataType:
        """The declared type of the assigned field, with its `char` and `varchar`."""
        found = declared_type(self.column)
        for member in self.path[1:]:
            assert isinstance(found, StructType)
            found = found.require(member.name).type
        return found

    @property
    def name(self) -> str:
        return ".".join(member.name for member in self.path)


@dataclass(frozen=True)
class CastAssignment:
    """An assignment, and the conversion of its value to the column's type.

    Args:
        assignment: the column and its value.
        given: the type of the value.
        way: the conversion to the column's type; None if the value has this type.
    """

    assignment: AssignedColumn
    given: DataType
    way: Conversion | None

    @property
    def text(self) -> str:
        """The value before the conversion."""
        # The line break ends a comment at the value's end.
        return f"({self.assignment.value}\n)"

    @property
    def value(self) -> Column:
        """The value in the column's type."""
        value = F.expr(self.text)
        return value if self.way is None else self.way.convert(value)

    def over(self, old: Column) -> Column:
        """Returns the value in the column's type, with the fields that its structs lack taken from `old`."""
        value = F.expr(self.text)
        return value if self.way is None else over(self.given, self.assignment.type, value, old)

    @property
    def lost(self) -> Column | None:
        """The value as a string if the column cannot hold it, else null; None if the column holds every value."""
        if self.way is None or self.way.loses is None:
            return None
        value = F.expr(self.text)
        return F.when(self.way.loses(value), value.cast("string"))


def resolve(
    assignments: Sequence[Assignment], schema: StructType, alias: str, table: str, inserts: bool = False
) -> tuple[AssignedColumn, ...]:
    """Resolves the columns that assignments set.

    Args:
        assignments: the assignments; a column's name may begin with the alias. The value DEFAULT is the column's
            default; a generated column that is set to DEFAULT is left out, so that it is computed.
        inserts: whether the rows are new.

    Raises:
        ColumnNotFoundError: if a column or field does not exist.
        InvalidStatementError: if a column is set twice, or both as a whole and in part, or if the statement may not set
            an identity column.
    """
    named = tuple(AssignedColumn(_path(each.column, schema, alias, table), each.value) for each in assignments)
    for each in named:
        numbering.check_set(each.column, inserts, _is_default(each), table)
    found = tuple(_default(each, table) if _is_default(each) else each for each in named if not _is_computed(each))
    _check_set_once(found, table)
    return found


def settings(
    frame: DataFrame,
    assignments: Sequence[AssignedColumn],
    table: str,
    known: Mapping[str, DataType] | None = None,
    evolves: bool = False,
) -> tuple[CastAssignment, ...]:
    """Returns the assignments, whose values are expressions over the frame, with the conversions to the columns' types.

    Args:
        known: types of some values, by their SQL; Spark analyses the remaining values.
        evolves: whether a struct may lack fields of its column.

    Raises:
        ColumnNotFoundError: if a struct lacks fields of its column, unless `evolves`.
        TypeMismatchError: if a value's type cannot be stored in its column.
    """
    types = dict(known or {})
    unknown = list(dict.fromkeys(each.value for each in assignments if each.value not in types))
    if unknown:
        asked = frame.selectExpr(*(f"({value}\n) as v{position}" for position, value in enumerate(unknown)))
        found_types = (member.type for member in kernel_schema(asked.schema))
        types.update(zip(unknown, found_types, strict=True))
    found = tuple(_setting(each, types[each.value], table) for each in assignments)
    if not evolves:
        _check_whole(found, table)
    return found


def as_text(settings: Sequence[CastAssignment]) -> str | None:
    """Returns the SQL of a column's value if it is a single assignment without conversion, else None."""
    if len(settings) == 1 and settings[0].way is None and len(settings[0].assignment.path) == 1:
        return settings[0].text
    return None


def with_assignments(column: Column, settings: Sequence[CastAssignment]) -> Column:
    """Returns a column of the table after the assignments to it and to its fields.

    A field of a null struct is set in a struct whose other fields are null.
    """
    column = _with_structs(column, settings)
    for setting in settings:
        inner = setting.assignment.path[1:]
        if inner:
            column = column.withField(_dotted(inner), setting.over(_field(column, inner)))
        else:
            column = setting.over(column)
    return column


def _with_structs(column: Column, settings: Sequence[CastAssignment]) -> Column:
    """Returns the column with a struct of nulls for each null struct that contains an assigned field."""
    paths = (
        setting.assignment.path[:length] for setting in settings for length in range(1, len(setting.assignment.path))
    )
    found = column
    for path in {tuple(member.name for member in path): path for path in paths}.values():
        inner = path[1:]
        # Spark's withField leaves a null struct null, and loses the value.
        present = F.coalesce(_field(column, inner), _of_nulls(path[-1].type))
        found = found.withField(_dotted(inner), present) if inner else present
    return found


def _of_nulls(struct: DataType) -> Column:
    assert isinstance(struct, StructType)
    return F.struct(*(F.lit(None).cast(spark_type(member.type)).alias(member.name) for member in struct))


def _field(column: Column, path: Sequence[StructField]) -> Column:
    return reduce(lambda found, member: found.getField(member.name), path, column)


def _dotted(path: Sequence[StructField]) -> str:
    return ".".join(quote(member.name) for member in path)


def losses(settings: Sequence[tuple[str, CastAssignment]], table: str) -> tuple[dict[str, Column], tuple[Check, ...]]:
    """Returns additional columns for the rows that record lost values, and the checks that read them.

    Args:
        settings: assignments, each with the SQL condition of the rows that it applies to.
    """
    columns: dict[str, Column] = {}
    checks: list[Check] = []
    for applies, setting in settings:
        lost = setting.lost
        if lost is not None:
            name = f"{_LOST}{len(columns)}"
            columns[name] = F.when(F.expr(applies), lost)
            checks.append(Check(F.col(name).isNotNull(), F.col(name), _lost_error(setting, table)))
    return columns, tuple(checks)


def widened(column: Column, old: DataType, new: DataType) -> Column:
    """Converts a column to a type whose structs have more members, which become null."""
    found = conversion(old, new, by_name=True)
    return column if found is None else found.convert(column)


def by_column(settings: Sequence[CastAssignment]) -> Mapping[str, list[CastAssignment]]:
    """Returns the assignments of each column, by its name in lower case."""
    grouped: dict[str, list[CastAssignment]] = {}
    for setting in settings:
        grouped.setdefault(setting.assignment.column.name.lower(), []).append(setting)
    return grouped


def _check_set_once(assignments: Sequence[AssignedColumn], table: str) -> None:
    by_path: dict[tuple[str, ...], AssignedColumn] = {}
    holders: dict[tuple[str, ...], AssignedColumn] = {}
    for each in assignments:
        path = tuple(member.name.lower() for member in each.path)
        beginnings = [path[:length] for length in range(1, len(path) + 1)]
        earlier = [by_path[start] for start in beginnings if start in by_path]
        earlier += [holders[path]] if path in holders else []
        if earlier:
            raise errors.InvalidStatementError(f"the column `{earlier[0].name}` is set more than once", table=table)
        by_path[path] = each
        for start in beginnings[:-1]:
            holders.setdefault(start, each)


def _is_default(assignment: AssignedColumn) -> bool:
    return assignment.value.strip().lower() == "default"


def _is_computed(assignment: AssignedColumn) -> bool:
    return _is_default(assignment) and assignment.place.is_computed


def _default(assignment: AssignedColumn, table: str) -> AssignedColumn:
    return replace(assignment, value=rules.default(assignment.place, table))


def _path(name: Name, schema: StructType, alias: str, table: str) -> tuple[StructField, ...]:
    if len(name) > 1 and name[0].lower() == alias.lower() and name[1] in schema:
        name = name[1:]
    path: list[StructField] = []
    inside: DataType = schema
    for part in name:
        member = inside.field(part) if isinstance(inside, StructType) else None
        if member is None:
            raise errors.ColumnNotFoundError(
                f"the column `{'.'.join(name)}` to set does not exist; columns: {', '.join(schema.names)}", table=table
            )
        path.append(member)
        inside = member.type
    return tuple(path)


def _setting(assignment: AssignedColumn, given: DataType, table: str) -> CastAssignment:
    wanted = assignment.type
    found = conversion(given, wanted, by_name=True)
    if found is None:
        raise errors.TypeMismatchError(
            f"a value of type {given.sql_name} cannot be stored in `{assignment.name}` of type {wanted.sql_name}",
            remedy="Cast the value in the statement, or change the table's column",
            table=table,
            details={"column": assignment.name},
        )
    return CastAssignment(assignment, given, None if nullable(given) == nullable(wanted) else found)


def _check_whole(settings: Sequence[CastAssignment], table: str) -> None:
    for setting in settings:
        assignment = setting.assignment
        missing = list(lacking(setting.given, assignment.type, assignment.name))
        if missing:
            raise errors.ColumnNotFoundError(
                f"the value for `{assignment.name}` lacks {', '.join(missing)}",
                remedy="Give the value every field of its column, set single fields of it, or write MERGE WITH SCHEMA "
                "EVOLUTION, which keeps the other fields",
                table=table,
                details={"column": assignment.name},
            )


def _lost_error(setting: CastAssignment, table: str) -> Callable[[int, str | None], errors.SiltError]:
    assignment = setting.assignment

    def error(count: int, example: str | None) -> errors.SiltError:
        rows = counted(count, "would get", "would get")
        return errors.ValueNotCastableError(
            f"{rows} a value of type {setting.given.sql_name} that the column `{assignment.name}` of type "
            f"{assignment.type.sql_name} cannot hold{shown(example)}",
            table=table,
            details={"column": assignment.name, "rows": count},
        )

    return error

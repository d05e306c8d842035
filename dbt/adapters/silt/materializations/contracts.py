"""Renders a contract as columns and constraints of CREATE TABLE, and finds comments that a table lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt_common.contracts.constraints import ConstraintType, ModelLevelConstraint
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.identifiers import quote, quoted_list, string_literal, unquote
from dbt.adapters.silt.materializations.incremental.config_columns import without_quotes

if TYPE_CHECKING:
    from dbt.adapters.silt.column import SiltColumn

Render = Callable[[dict[str, Any]], str | None]
"""Returns a model's constraint as SQL, or None if it is omitted; warns if it is not enforced."""

_OF_THE_COLUMN = (ConstraintType.not_null, ConstraintType.custom)
"""The only constraint that the format stores in a column; all other constraints belong to the table."""

_OF_COLUMNS = (ConstraintType.primary_key, ConstraintType.unique, ConstraintType.foreign_key)


def check_contract(columns: Mapping[str, Mapping[str, Any]], type_remedy: Callable[[str], str | None]) -> None:
    """Checks the types of a contract, before dbt compares them with the query's.

    Args:
        columns: the model's, as dbt passes them to macros.
        type_remedy: returns the remedy for a type that cannot be stored, else None.

    Raises:
        CompilationError: if columns have unknown types; the message lists them.
    """
    types = {each["name"]: each.get("data_type") for each in columns.values()}
    remedies = {name: (kind, type_remedy(str(kind))) for name, kind in types.items() if kind}
    found = [f"  - `{name}` has `{kind}`. {remedy}" for name, (kind, remedy) in remedies.items() if remedy]
    if found:
        raise CompilationError("\n".join(["The contract of this model has types that Spark does not have:", *found]))


def table_elements(
    columns: Mapping[str, Mapping[str, Any]],
    constraints: Sequence[Mapping[str, Any]],
    render: Render,
    with_comments: bool,
    enforced_keys: bool = False,
) -> list[str]:
    """Returns the parts in the parentheses of CREATE TABLE: the columns of a contract, then the table's constraints.

    Args:
        columns, constraints: the model's, as dbt passes them to macros.
        with_comments: whether column descriptions become comments.
        enforced_keys: whether keys that do not say so are enforced.
    """
    not_null = {
        without_quotes(name).lower() for each in constraints if _is_not_null(each) for name in each.get("columns") or []
    }
    elements = [_column(column, column["name"].lower() in not_null, with_comments) for column in columns.values()]
    own = [
        {**constraint, "columns": [column["name"]]}
        for column in columns.values()
        for constraint in column.get("constraints") or []
        if constraint["type"] not in _OF_THE_COLUMN
    ]
    of_table = [dict(each) for each in (*own, *constraints) if not _is_not_null(each)]
    rendered = [render(_enforced(each) if enforced_keys else each) for each in of_table]
    return [*elements, *(text for text in rendered if text)]


def _enforced(constraint: dict[str, Any]) -> dict[str, Any]:
    """Returns a constraint, as an enforced key if it is a key that can be enforced and does not say whether it is."""
    expression = constraint.get("expression") or ""
    if constraint["type"] not in _OF_COLUMNS or says_enforced(expression) is not None:
        return constraint
    return {**constraint, "expression": f"{expression} enforced".strip()}


def says_enforced(expression: str | None) -> bool | None:
    """Returns whether the words at the end of a key say that it is enforced; None if they say nothing about it."""
    words = (expression or "").lower().split()
    if "enforced" not in words:
        return None
    return words[words.index("enforced") - 1 : words.index("enforced")] != ["not"]


def constraint_sql(constraint: ModelLevelConstraint) -> str | None:
    """Returns a table's constraint as SQL.

    Raises:
        CompilationError: if a required part is missing.
    """
    kind, more = constraint.type, f" {constraint.expression}" if constraint.expression else ""
    if kind in _OF_COLUMNS and not constraint.columns:
        raise CompilationError(f"a constraint of type `{kind.value}` needs its `columns`: add the list of columns")
    columns = quoted_list(map(without_quotes, constraint.columns))
    end = "\n" if "--" in (constraint.expression or "") else ""
    if kind is ConstraintType.check:
        # The line break ends a comment at the expression's end.
        text = f"check ({_required(constraint, 'expression')}{end})"
    elif kind is ConstraintType.primary_key:
        text = f"primary key ({columns}){more}"
    elif kind is ConstraintType.unique:
        text = f"unique ({columns}){more}"
    elif kind is ConstraintType.foreign_key and constraint.to:
        target = f" ({quoted_list(map(without_quotes, constraint.to_columns))})" if constraint.to_columns else ""
        text = f"foreign key ({columns}) references {constraint.to}{target}{more}"
    elif kind is ConstraintType.foreign_key and not constraint.expression:
        raise CompilationError(
            "a constraint of type `foreign_key` needs the table that it refers to: add `to: ref('name')`, `to_columns`"
        )
    elif kind is ConstraintType.foreign_key:
        text = f"foreign key ({columns}) references {constraint.expression}"
    else:
        text = _required(constraint, "expression")
    return f"constraint {quote(unquote(constraint.name))} {text}" if constraint.name else text


def _column(column: Mapping[str, Any], not_null: bool, with_comments: bool) -> str:
    constraints = column.get("constraints") or []
    parts = [quote(column["name"]), column["data_type"]]
    if not_null or any(_is_not_null(each) for each in constraints):
        parts.append("not null")
    parts += [each["expression"] for each in constraints if each["type"] == ConstraintType.custom]
    if with_comments:
        parts.append(f"comment {string_literal(column.get('description') or '')}")
    return " ".join(parts)


def _is_not_null(constraint: Mapping[str, Any]) -> bool:
    return bool(constraint["type"] == ConstraintType.not_null)


def _required(constraint: ModelLevelConstraint, part: str) -> str:
    value = getattr(constraint, part)
    if not value:
        raise CompilationError(f"a constraint of type `{constraint.type.value}` needs its `{part}`: add it")
    return str(value)


Documented = Mapping[str, Mapping[str, Any]]
"""The columns of a node by name, as dbt passes them to macros."""


def documented_comments(columns: Sequence[SiltColumn], documented: Documented) -> dict[str, str]:
    """Returns column comments by name, or by dotted path for nested fields; empty for columns without a description.

    A name matches in any case, unless the documentation requires the exact spelling (`quote: true`).
    """
    exact = {name: each for name, each in documented.items() if each.get("quote")}
    folded = {name.lower(): each for name, each in documented.items() if not each.get("quote")}
    found = {path: exact.get(path) or folded.get(path.lower()) for path in all_comments(columns)}
    return {path: each.get("description") or "" for path, each in found.items() if each is not None}


def comment_changes(columns: Sequence[SiltColumn], documented: Documented) -> list[str]:
    """Returns the changes for ALTER TABLE ... ALTER COLUMN that set the documented comments."""
    there = all_comments(columns)
    comments = documented_comments(columns, documented)
    return [
        f"{_quoted(path, columns)} comment {string_literal(text)}"
        for path, text in comments.items()
        if text != (there[path] or "")
    ]


def all_comments(columns: Sequence[SiltColumn]) -> dict[str, str | None]:
    """Returns the comments of all columns and of their nested fields, by name or dotted path."""
    inner = {field.column: field.comment for each in columns for field in each.fields}
    return {**inner, **{each.name: each.comment for each in columns}}


def _quoted(path: str, columns: Sequence[SiltColumn]) -> str:
    """Quotes a name, so that a name with a dot is not read as a path."""
    is_column = any(each.name == path for each in columns)
    return quote(path) if is_column else ".".join(map(quote, path.split(".")))

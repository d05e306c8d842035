"""Writes expressions of Spark Connect as SQL: the arguments of SQL texts, and the conditions of writes and merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from pyspark.sql.connect.proto import expressions_pb2 as pe
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type
from pyspark.sql.types import StructType

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, tokenize

_BETWEEN: Final = frozenset("+ - * / % = == != <> <=> < <= > >= & | ^ and or like rlike ilike".split())
_EPOCH: Final = datetime(1970, 1, 1)
_SUFFIXES: Final = {"byte": "Y", "short": "S", "integer": "", "long": "L"}


def bound(text: str, command: Any) -> str:
    """Returns an SQL text with its arguments in the places of its parameters, `?` and `:name`.

    Args:
        command: the message that contains the arguments, a SqlCommand or an SQL relation.

    Raises:
        UnsupportedStatementError: if an argument cannot be written as SQL.
    """
    positional = [*map(_literal, command.pos_args), *map(sql_of, command.pos_arguments)]
    named = {name: _literal(value) for name, value in command.args.items()}
    named |= {name: sql_of(value) for name, value in command.named_arguments.items()}
    return _with_arguments(text, positional, named) if positional or named else text


def _with_arguments(text: str, positional: Sequence[str], named: Mapping[str, str]) -> str:
    tokens, left, pieces, end = tokenize(text), list(positional), [], 0
    for at, token in enumerate(tokens):
        if token.word == "?" and left:
            value, last = left.pop(0), token
        elif _is_parameter(tokens, at) and tokens[at + 1].text in named:
            value, last = named[tokens[at + 1].text], tokens[at + 1]
        else:
            continue
        pieces += [text[end : token.start], value]
        end = last.end
    return "".join([*pieces, text[end:]])


def _is_parameter(tokens: Sequence[Token], at: int) -> bool:
    """Returns whether `:name` begins here, and not the path into a value of the type variant, as in `column:path`."""
    token = tokens[at]
    if token.word != ":" or tokens[at + 1].start != token.end or tokens[at + 1].kind is not Kind.WORD:
        return False
    before = tokens[at - 1] if at else None
    return before is None or before.end != token.start or not (before.is_identifier or before.word in (")", "]"))


def sql_of(expression: pe.Expression) -> str:
    """Returns an expression as SQL.

    Raises:
        UnsupportedStatementError: if it is of a kind that has no SQL, such as a function in Python.
    """
    kind = expression.WhichOneof("expr_type")
    match kind:
        case "literal":
            return _literal(expression.literal)
        case "unresolved_attribute":
            return str(expression.unresolved_attribute.unparsed_identifier)
        case "expression_string":
            return f"({expression.expression_string.expression}\n)"
        case "alias":
            return sql_of(expression.alias.expr)
        case "cast":
            return _cast(expression.cast)
        case "unresolved_function":
            called = expression.unresolved_function
            return _call(called.function_name, [sql_of(each) for each in called.arguments])
        case "call_function":
            arguments = ", ".join(map(sql_of, expression.call_function.arguments))
            return f"{expression.call_function.function_name}({arguments})"
    raise UnsupportedStatementError(
        f"an expression of the kind `{kind}` cannot be used here", remedy="Write the condition as SQL, with `expr(...)`"
    )


def column_of(expression: pe.Expression) -> str:
    """Returns the name of a column that is assigned, as SQL; raises as `sql_of`."""
    return str(expression.expression_string.expression) or sql_of(expression)


def _cast(cast: pe.Expression.Cast) -> str:
    kind = cast.type_str or proto_schema_to_pyspark_data_type(cast.type).simpleString()
    return f"cast({sql_of(cast.expr)} as {kind})"


def _call(name: str, arguments: list[str]) -> str:
    word = name.lower()
    if word in _BETWEEN and len(arguments) == 2:
        return f"({arguments[0]} {word} {arguments[1]})"
    if word in ("not", "!"):
        return f"(not {arguments[0]})"
    if word == "in":
        return f"({arguments[0]} in ({', '.join(arguments[1:])}))"
    if word == "when":
        pairs = zip(arguments[::2], arguments[1::2], strict=False)
        clauses = " ".join(f"when {condition} then {value}" for condition, value in pairs)
        return f"(case {clauses}{f' else {arguments[-1]}' if len(arguments) % 2 else ''} end)"
    shown = name if "." in name or name.isidentifier() else quote(name)
    return f"{shown}({', '.join(arguments)})"


def _literal(literal: pe.Expression.Literal) -> str:
    kind = literal.WhichOneof("literal_type")
    if kind in _SUFFIXES:
        number = f"{getattr(literal, kind)}{_SUFFIXES[kind]}"
        return f"({number})" if number.startswith("-") else number
    value = None if kind is None else _LITERALS.get(kind)
    if value is None:
        raise UnsupportedStatementError(
            f"an argument of the type `{kind}` cannot be used here", remedy="Write the value into the SQL text"
        )
    return str(value(getattr(literal, str(kind))))


def _date(days: int) -> str:
    try:
        return f"date'{(_EPOCH + timedelta(days=days)).date().isoformat()}'"
    except OverflowError:  # a date outside the years 1 to 9999
        return f"date_from_unix_date({days})"


def _time_without_zone(micros: int) -> str:
    return f"timestamp_ntz'{(_EPOCH + timedelta(microseconds=micros)).isoformat(sep=' ')}'"


def _decimal(value: Any) -> str:
    digits = value.value.lstrip("-").replace(".", "")
    scale = value.scale if value.HasField("scale") else len(value.value.partition(".")[2])
    precision = value.precision if value.HasField("precision") else max(len(digits), scale)
    return f"cast('{value.value}' as decimal({precision}, {scale}))"


def _struct(value: Any) -> str:
    kind: StructType = proto_schema_to_pyspark_data_type(value.struct_type)  # type: ignore[assignment]
    names = [each.name for each in kind.fields]
    members = (f"{string_literal(name)}, {_literal(each)}" for name, each in zip(names, value.elements, strict=True))
    return f"named_struct({', '.join(members)})"


def _map(value: Any) -> str:
    pairs = zip(value.keys, value.values, strict=True)
    return f"map({', '.join(f'{_literal(key)}, {_literal(each)}' for key, each in pairs)})"


_LITERALS: Final[Mapping[str, Any]] = {
    "null": lambda value: f"cast(null as {proto_schema_to_pyspark_data_type(value).simpleString()})",
    "binary": lambda value: f"X'{value.hex()}'",
    "boolean": lambda value: str(value).lower(),
    "float": lambda value: f"cast('{value!r}' as float)",
    "double": lambda value: f"cast('{value!r}' as double)",
    "decimal": _decimal,
    "string": string_literal,
    "date": _date,
    "timestamp": lambda value: f"timestamp_micros({value}L)",
    "timestamp_ntz": _time_without_zone,
    "year_month_interval": lambda value: f"make_ym_interval(0, {value})",
    "day_time_interval": lambda value: f"make_dt_interval(0, 0, 0, cast({value} as decimal(38, 6)) / 1000000)",
    "array": lambda value: f"array({', '.join(map(_literal, value.elements))})",
    "map": _map,
    "struct": _struct,
}

"""Translates the types and functions of other platforms into Spark's, for the remedies of errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dbt.adapters.silt.engine.kernel.near_names import near_names

_TYPE: Final = re.compile(r"\s*(?P<name>[\w ]+?)\s*(?P<arguments>\([\d\s,]*\))?\s*")

_IDENTITY: Final = re.compile(r"\b(identity\s*\(|auto_?increment\b)", re.IGNORECASE)

_DECIMAL: Final = re.compile(r"\b(?:decimal|numeric|dec)\s*\(\s*(\d+)", re.IGNORECASE)
_MOST_DIGITS: Final = 38
_WORD: Final = re.compile(r"[a-z_]\w*", re.IGNORECASE)
_SIMILAR: Final = 0.75
_SPARK_TYPES: Final = (
    "array bigint binary boolean byte char date decimal double float int integer interval long map numeric real short "
    "smallint string struct timestamp timestamp_ltz timestamp_ntz tinyint varchar variant"
).split()
TYPES: Final = "Spark's types are string, bigint, int, double, decimal(10, 2), boolean, date, timestamp and others"
"""The remedy for a type of which nothing else is known."""

_STRING: Final = "string"
_WITHOUT_ZONE: Final = "timestamp_ntz"
_OBJECT: Final = "map<string, string>"
_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("text", "tinytext", "mediumtext", "longtext", "ntext", "citext"), _STRING),
    **dict.fromkeys(("clob", "nclob", "uuid", "uniqueidentifier", "xml"), _STRING),
    **dict.fromkeys(("json", "jsonb"), _STRING),
    **dict.fromkeys(("varchar", "varchar2", "nvarchar", "nvarchar2", "nchar", "char"), _STRING),
    **dict.fromkeys(("int64", "int8"), "bigint"),
    **dict.fromkeys(("int4", "mediumint"), "int"),
    **dict.fromkeys(("int2", "smallserial"), "smallint"),
    "serial": "int",
    **dict.fromkeys(("bigserial", "uint32", "uinteger"), "bigint"),
    **dict.fromkeys(("uint64", "ubigint"), "decimal(20, 0)"),
    "bit": "boolean",
    "unsigned": "bigint",
    "super": "variant",
    **dict.fromkeys(("time", "timetz", "time_ntz"), _STRING),
    "object": _OBJECT,
    **dict.fromkeys(("float64", "float8", "binary_double"), "double"),
    **dict.fromkeys(("float4", "binary_float"), "float"),
    **dict.fromkeys(("number", "bignumeric", "bigdecimal"), "decimal(38, 0)"),
    "hugeint": "decimal(38, 0)",
    "money": "decimal(19, 4)",
    "bool": "boolean",
    **dict.fromkeys(("datetime", "datetime2", "smalldatetime", "timestampntz"), _WITHOUT_ZONE),
    **dict.fromkeys(("timestamptz", "timestamp_tz", "timestampltz", "datetimeoffset"), "timestamp"),
    **dict.fromkeys(("bytes", "bytea", "blob", "varbinary", "raw", "longblob"), "binary"),
}
"""Spark's types for the types that Spark does not have, or does not have without a length."""

_WITH_LENGTH: Final[Mapping[str, str]] = {
    **dict.fromkeys(("number", "bignumeric", "bigdecimal"), "decimal"),
    **dict.fromkeys(("varchar2", "nvarchar", "nvarchar2"), "varchar"),
    "nchar": "char",
}
"""Spark's types for types with the same arguments."""

_EXPLAINED: Final[Mapping[str, str]] = {
    "decimal(38, 0)": "; its arguments are the precision and the scale",
    _OBJECT: ", `struct<name: type, ...>` or `variant`",
    _WITHOUT_ZONE: " (a local time), or `timestamp` (an instant)",
}

FUNCTIONS: Final[Mapping[str, str]] = {
    "age": "datediff(day, start, end) or months_between(end, start)",
    "approx_distinct": "approx_count_distinct(...)",
    "approx_quantiles": "approx_percentile(x, array(0.25, 0.5, 0.75))",
    "arbitrary": "any_value(...)",
    "arg_max": "max_by(x, y)",
    "arg_min": "min_by(x, y)",
    "array_cat": "concat(a, b)",
    "array_concat": "concat(a, b)",
    "array_concat_agg": "flatten(collect_list(...))",
    "array_construct": "array(...)",
    "array_flatten": "flatten(...)",
    "array_intersection": "array_intersect(...)",
    "array_length": "array_size(...)",
    "array_reverse": "reverse(...)",
    "array_slice": "slice(a, start, length)",
    "array_to_string": "array_join(...)",
    "base64_decode_string": "cast(unbase64(x) as string)",
    "base64_encode": "base64(...)",
    "bitand": "a & b",
    "bitor": "a | b",
    "bitshiftleft": "shiftleft(...)",
    "bitshiftright": "shiftright(...)",
    "booland_agg": "bool_and(...)",
    "boolor_agg": "bool_or(...)",
    "charindex": "locate(part, text)",
    "convert": "cast(x as type)",
    "countif": "count_if(...)",
    "current_datetime": "localtimestamp()",
    "date_from_parts": "make_date(year, month, day)",
    "date_parse": "to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
    "dateadd": "dateadd(day, 1, t)",
    "datediff": "datediff(day, start, end)",
    "datefromparts": "make_date(year, month, day)",
    "datetime": "cast(x as timestamp_ntz)",
    "datetime_add": "t + interval 1 day",
    "datetime_diff": "timestampdiff(unit, start, end)",
    "datetime_sub": "t - interval 1 day",
    "datetime_trunc": "date_trunc('unit', t)",
    "dayofweekiso": "extract(dayofweek_iso from x)",
    "div0": "if(b = 0, 0, a / b)",
    "div0null": "coalesce(try_divide(a, b), 0)",
    "editdistance": "levenshtein(...)",
    "ends_with": "endswith(text, part)",
    "epoch": "unix_timestamp(t)",
    "farm_fingerprint": "xxhash64(...)",
    "format": "format_string(...)",
    "format_date": "date_format(x, 'yyyy-MM-dd')",
    "format_datetime": "date_format(x, 'yyyy-MM-dd HH:mm:ss')",
    "format_timestamp": "date_format(x, 'yyyy-MM-dd HH:mm:ss')",
    "from_base64": "unbase64(...)",
    "from_iso8601_timestamp": "cast(x as timestamp)",
    "gen_random_uuid": "uuid()",
    "generate_array": "sequence(...)",
    "generate_date_array": "sequence(start, end, interval 1 day)",
    "generate_series": "sequence(...) or range(...)",
    "generate_timestamp_array": "sequence(start, end, interval 1 hour)",
    "generate_uuid": "uuid()",
    "generator": "range(n)",
    "get_path": "get_json_object(x, '$.name') or variant_get(x, '$.name')",
    "getdate": "current_timestamp()",
    "hash_agg": "bit_xor(xxhash64(...))",
    "hex_encode": "hex(...)",
    "iff": "if(...) or case",
    "json_extract": "get_json_object(x, '$.name')",
    "json_extract_array_element_text": "get_json_object(x, '$[0]')",
    "json_extract_path_text": "get_json_object(x, '$.name')",
    "json_extract_scalar": "get_json_object(x, '$.name')",
    "json_parse": "parse_json(...)",
    "json_query": "get_json_object(x, '$.name')",
    "json_value": "get_json_object(x, '$.name')",
    "list_contains": "array_contains(...)",
    "list_value": "array(...)",
    "logical_and": "bool_and(...)",
    "logical_or": "bool_or(...)",
    "md5_hex": "md5(...)",
    "object_agg": "map_from_entries(collect_list(struct(key, value)))",
    "object_construct": "named_struct(...) or map(...)",
    "object_keys": "map_keys(...) or json_object_keys(...)",
    "offset": "`a[0]` for the first element of an array",
    "on": "`qualify row_number() over (partition by ... order by ...) = 1` in place of `distinct on (...)`",
    "parse_date": "to_date(x, 'yyyy-MM-dd')",
    "parse_datetime": "to_timestamp_ntz(x, 'yyyy-MM-dd HH:mm:ss')",
    "parse_timestamp": "to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
    "pg_typeof": "typeof(...)",
    "quantile_cont": "percentile(x, 0.5)",
    "ratio_to_report": "x / sum(x) over ()",
    "regexp_contains": "regexp_like(...)",
    "regexp_matches": "regexp_like(...)",
    "row_to_json": "to_json(...)",
    "safe_cast": "try_cast(x as type)",
    "safe_divide": "try_divide(...)",
    "safe_offset": "`get(a, 0)` for the first element of an array",
    "seq4": "the column `id` of range(n)",
    "seq8": "the column `id` of range(n)",
    "sha1_hex": "sha1(...)",
    "sha256": "sha2(x, 256)",
    "sha2_hex": "sha2(x, 256)",
    "split_to_array": "split(...)",
    "square": "power(x, 2)",
    "starts_with": "startswith(text, part)",
    "strftime": "date_format(x, 'yyyy-MM-dd')",
    "string_split": "split(...)",
    "string_to_array": "split(...)",
    "strpos": "locate(...)",
    "strptime": "to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
    "strtok": "split_part(...)",
    "struct_pack": "named_struct(...)",
    "sysdate": "current_timestamp()",
    "sysdatetime": "current_timestamp()",
    "systimestamp": "current_timestamp()",
    "timestamp_add": "t + interval 1 day",
    "timestamp_diff": "timestampdiff(unit, start, end)",
    "timestamp_from_parts": "make_timestamp(...)",
    "timestamp_ntz_from_parts": "make_timestamp_ntz(...)",
    "timestamp_sub": "t - interval 1 day",
    "timestamp_trunc": "date_trunc('unit', t)",
    "timestampadd": "timestampadd(day, 1, t)",
    "timestampdiff": "timestampdiff(day, start, end)",
    "to_base64": "base64(...)",
    "to_boolean": "cast(x as boolean)",
    "to_decimal": "cast(x as decimal(p, s))",
    "to_double": "cast(x as double)",
    "to_hex": "hex(...)",
    "to_json_string": "to_json(...)",
    "to_jsonb": "to_json(...)",
    "to_numeric": "cast(x as decimal(p, s))",
    "to_timestamp_tz": "cast(x as timestamp)",
    "to_variant": "cast(x as variant)",
    "today": "current_date()",
    "try_to_boolean": "try_cast(x as boolean)",
    "try_to_decimal": "try_cast(x as decimal(p, s))",
    "try_to_double": "try_cast(x as double)",
    "try_to_numeric": "try_cast(x as decimal(p, s))",
    "try_to_timestamp_ntz": "try_cast(x as timestamp_ntz)",
    "unnest": "explode(...)",
    "uuid_string": "uuid()",
    "week": "weekofyear(...)",
    "weekiso": "weekofyear(...)",
    "zip": "arrays_zip(...)",
}
"""Spark's equivalents of the functions of other platforms."""

NEED_A_UNIT: Final = frozenset(("dateadd", "datediff", "timestampadd", "timestampdiff"))
"""Functions that Spark has only if their first argument is a unit of time."""

CALLS: Final[Mapping[tuple[str, int], str]] = {
    ("current_date", 1): "to_date(convert_timezone('Europe/Paris', localtimestamp()))",
    ("current_timestamp", 1): "convert_timezone('Europe/Paris', localtimestamp())",
    ("date", 3): "make_date(year, month, day)",
    ("isnull", 2): "coalesce(a, b)",
    ("last_day", 2): "last_day(d) for a month, or date_add(date_trunc('year', d) + interval 1 year, -1)",
    **{("regexp_substr", count): "regexp_extract(text, pattern, group)" for count in range(3, 7)},
    ("to_char", 1): "cast(x as string); `to_char` needs a format",
    ("to_number", 1): "cast(x as decimal(p, s)); `to_number` needs a format",
    ("to_varchar", 1): "cast(x as string); `to_varchar` needs a format",
    ("trunc", 1): "date_trunc('day', t) for a time, or cast(x as bigint) for a number",
    ("try_to_number", 1): "try_cast(x as decimal(p, s)); `try_to_number` needs a format",
}
"""Spark's equivalents of calls with a number of arguments that Spark's function of that name does not accept."""


def type_remedy(text: str) -> str | None:
    """Returns the remedy for a column type that Spark does not have, if the type is known.

    Args:
        text: the type as SQL, such as `number(10, 2)`.
    """
    if _IDENTITY.search(text):
        return "In Spark, write `bigint generated always as identity`"
    found = _TYPE.fullmatch(text)
    if found is None:
        return _near_type(text)
    name, arguments = found["name"].lower(), found["arguments"]
    if arguments and name in _WITH_LENGTH:
        return f"In Spark, the type is `{_WITH_LENGTH[name]}{arguments}`"
    spark = _TYPES.get(name)
    return _near_type(text) if spark is None else f"In Spark, the type is `{spark}`{_EXPLAINED.get(spark, '')}"


def _near_type(text: str) -> str | None:
    """Returns the remedy for a wrong word inside of a type, or a decimal with too many digits."""
    digits = _DECIMAL.search(text)
    if digits is not None and int(digits[1]) > _MOST_DIGITS:
        return f"A decimal has at most {_MOST_DIGITS} digits: write `decimal({_MOST_DIGITS}, s)`, or store a string"
    for word in _WORD.finditer(text):
        name, begun, rest = word[0].lower(), text[: word.start()].lower(), text[word.end() :].lower()
        if name in _TYPES and name not in _SPARK_TYPES:
            return None if rest.lstrip().startswith("(") else f"In Spark, write `{begun}{_TYPES[name]}{rest}`"
        near = [] if name in _SPARK_TYPES else near_names(name, _SPARK_TYPES, 1, _SIMILAR)
        if near:
            return f"Did you mean `{begun}{near[0]}{rest}`?"
    return None

"""Resolves sources on files, from `external_location` in their properties.

    sources:
      - name: raw
        meta:
          external_location: "landing/{name}/*.csv"    # relative to the project; or a URI that Spark can read
          options: {sep: ";"}                          # of Spark's reader; `format` if the ending does not show it
        tables:
          - name: orders
            columns: [{name: id, data_type: bigint}]   # by name; the types of other columns are inferred
                                                       # (all of them, in order, if `header` is false)

A `data_type` may have its name in another database (`varchar`, `int8`), as in a seed's `column_types`. In Parquet
files, which contain types, it only widens them.

As in dbt-duckdb, the settings are in `meta` or `config` of the source or of its table; the table's take precedence.
Options of the source apply to each of its tables whose format supports them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.engine.catalog.names.locations import local_path
from dbt.adapters.silt.engine.commands.spark.file_formats import belongs_to_other_formats, format_of
from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal

if TYPE_CHECKING:
    from dbt.adapters.contracts.relation import RelationConfig

_DUCKDB_FUNCTION = re.compile(r"\s*(read_|delta_|iceberg_)?\w+\s*\(")
_FIELD = re.compile(r"\{(\w+)\}")
_WITH_DECLARED_TYPES = ("csv", "json")  # files of the other formats contain the types of their columns
_WITH_WIDER_TYPES = ("parquet",)
_WIDE = re.compile(r"(decimal|dec|numeric|((small|big)?int|integer|long|short|double|real|timestamp_ntz)$)")
"""The types to which a type in a file can be widened."""


@dataclass(frozen=True)
class External:
    """The files of a source.

    Attributes:
        text: the SQL that replaces the relation in a query.
        location: an absolute path, possibly a pattern, or a URI.
        format: `delta`, or the format of the files.
        types_are_guessed: whether each read infers the types of all columns from the content of the files.
    """

    text: str
    location: str
    format: str
    types_are_guessed: bool = False


def external_of(source: RelationConfig, project_root: str) -> External | None:
    """Returns the files of a source, if it reads files.

    Raises:
        DbtRuntimeError: if its settings cannot be used.
    """
    settings = _settings(source)
    pattern = settings.get("external_location")
    if not pattern:
        return None
    name = f"{getattr(source, 'source_name', source.schema)}.{source.name}"
    location = _absolute(_filled(str(pattern), name, source, settings), project_root)
    file_format = str(settings.get("format") or format_of(location) or "").lower()
    if not file_format:
        raise _problem(name, f"the extension of `{location}` does not give its format: set `format`, such as `parquet`")
    if file_format == "delta":
        return External(_delta(location), location, file_format)
    options = _options(name, source, settings, file_format)
    hints = _hints(file_format, source, options)
    arguments = {"format": file_format, **_defaults(file_format, options), **hints}
    text = read_files(location, {**arguments, **options}, f"source {name}")
    return External(text, location, file_format, not hints and _is_guessed(file_format, options))


def read_files(location: str, options: Mapping[str, Any], whose: str) -> str:
    """Returns a call of the engine's table function, with a comment that names the reader."""
    given = "".join(f", {_option_name(name)} => {_literal(value)}" for name, value in options.items())
    return f"read_files({string_literal(location)}{given} /* {whose.replace('*/', '* /')} */)"


def declared(columns: Iterable[tuple[str, str]]) -> str:
    """Returns names and types of columns in SQL's syntax."""
    return ", ".join(f"{quote(name)} {kind}" for name, kind in columns)


def _settings(source: RelationConfig) -> dict[str, Any]:
    config = source.config
    own = config.extra if config is not None else {}
    parts = (getattr(source, "source_meta", None), source.meta, getattr(config, "meta", None), own)
    return {name: value for part in parts for name, value in (part or {}).items()}


def _options(name: str, source: RelationConfig, settings: Mapping[str, Any], file_format: str) -> Mapping[str, Any]:
    """Returns the reader's options; omits options of the source that only other formats have."""
    options = settings.get("options") or {}
    if not isinstance(options, Mapping):
        raise _problem(name, "`options` must map option names to values, such as `{sep: ';'}`")
    if options != (getattr(source, "source_meta", None) or {}).get("options"):
        return options
    return {each: value for each, value in options.items() if not belongs_to_other_formats(str(each), file_format)}


def _filled(pattern: str, name: str, source: RelationConfig, settings: Mapping[str, Any]) -> str:
    """Fills in the placeholders of a location."""
    if _DUCKDB_FUNCTION.match(pattern):
        raise _problem(name, "give only the path as `external_location`, and `format` and `options` next to it")
    fields = {**settings, "schema": source.schema, "database": source.database, "name": source.name}
    fields["identifier"] = source.identifier
    formatter = settings.get("formatter", "newstyle")
    try:
        if formatter == "newstyle":
            return _FIELD.sub(lambda found: str(fields[found[1]]), pattern)
        if formatter == "oldstyle":
            return pattern % fields
        if formatter == "template":
            return Template(pattern).substitute(fields)
    except (KeyError, ValueError, TypeError) as error:
        known = "`name`, `identifier`, `schema`, `database` and the keys of `meta`"
        raise _problem(name, f"`{pattern}` cannot be filled in ({error}): the names are {known}") from error
    raise _problem(name, f"`formatter` must be newstyle, oldstyle or template, not `{formatter}`")


def _absolute(location: str, project_root: str) -> str:
    if "://" in location:
        return location
    return str(Path(project_root, Path(location).expanduser()).absolute())


def _delta(location: str) -> str:
    return "delta." + quote(local_path(location))


def _defaults(file_format: str, options: Mapping[str, Any]) -> dict[str, Any]:
    given = {name.lower() for name in options}
    return {"header": True} if file_format == "csv" and "header" not in given else {}


def _hints(file_format: str, source: RelationConfig, options: Mapping[str, Any]) -> dict[str, str]:
    """Returns the column types that the source declares: by name, or in order if the files have no names."""
    given = {name.lower(): str(value).lower() for name, value in options.items()}
    if {"schema", "schemahints", "widento"} & given.keys():
        return {}
    typed = [(each.name, SiltColumn.translate_type(each.data_type)) for each in _columns(source) if each.data_type]
    if file_format in _WITH_WIDER_TYPES:
        wide = [(name, kind) for name, kind in typed if _WIDE.match(kind.lower())]
        return {"widenTo": declared(wide)} if wide else {}
    nameless = file_format == "csv" and given.get("header") == "false"
    has_types = file_format in _WITH_DECLARED_TYPES and typed
    return {"schema" if nameless else "schemaHints": declared(typed)} if has_types else {}


def _columns(source: RelationConfig) -> Iterable[Any]:
    return (getattr(source, "columns", None) or {}).values()


def _is_guessed(file_format: str, options: Mapping[str, Any]) -> bool:
    """Returns whether the types of undeclared columns are inferred from the files' content."""
    given = {name.lower(): str(value).lower() for name, value in options.items()}
    return file_format == "csv" and given.get("inferschema") != "false" and not {"schema", "schemahints"} & given.keys()


def _option_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quote(name)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else string_literal(str(value))


def _problem(name: str, problem: str) -> DbtRuntimeError:
    return DbtRuntimeError(f"source {name}: {problem}")

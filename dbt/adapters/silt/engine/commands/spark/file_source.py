"""Reads files that belong to no table, for `read_files`.

It is stricter than Spark's own readers: a value that is not of its column's type and a header that differs from the
schema are errors, because Spark would return nulls, or values under another column's name. A quote within quotes is
doubled, as in RFC 4180; Spark expects a backslash before it, and misreads a doubled quote. Options select Spark's
behavior (`mode => 'PERMISSIVE'`, `enforceSchema => true`, `escape => '\\\\'`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import CharType, DataType, StringType, StructField, StructType, VarcharType

from dbt.adapters.silt.engine.commands.spark import errors, stored_columns
from dbt.adapters.silt.engine.commands.spark.failures.causes import first_line
from dbt.adapters.silt.engine.commands.spark.file_formats import check_options, format_of
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    FilesNotFoundError,
    InvalidStatementError,
    SparkEndedError,
    SparkUnavailableError,
    StorageError,
)
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store, joined
from dbt.adapters.silt.engine.kernel.table.type_widening import is_widening

_MANIFEST: Final = "manifest"
_LOOKS: Final = 4
_WITH_FILTERS: Final = ("parquet", "orc")
"""Formats whose readers skip rows by statistics in the file."""

_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "csv": {"inferschema": "true", "enforceschema": "false", "mode": "FAILFAST", "escape": '"'},
    "json": {"mode": "FAILFAST"},
}


@dataclass(frozen=True)
class FileSource:
    """Files to read, with the options of the read.

    Attributes:
        path: a file, a folder or a pattern (`/data/*.csv`), or a URI of a file system that Spark supports.
        options: options by lower-case name: `format` (by default from the path's ending), `schema` (the columns in
            order, as SQL), `schemahints` (the types of some columns, by name), `widento` (the same, for columns of
            files with types, which only get a wider type), `manifest` (the name of a file in the folder that names the
            files to read), and the options of Spark's reader.
        text: the expression in the statement, for messages.
        open_store: opens the folder of a manifest.
    """

    path: str
    options: Mapping[str, str]
    text: str
    open_store: Callable[[str], Store]


def read(spark: SparkSession, source: FileSource) -> DataFrame:
    """Returns the rows of the files.

    Raises:
        FilesNotFoundError: if no files exist, or if they differ from the files that a manifest names.
        ColumnNotFoundError: if `schemahints` names a column that the files lack.
        InvalidArgumentError: if the reader of the format lacks an option.
        InvalidStatementError: if the format does not exist, or `schema` is not a list of columns.
        StorageError, SparkUnavailableError: if a storage fails, or Spark cannot reach it.
    """
    with _mapped(source):
        rows = _listed(spark, source) if _MANIFEST in source.options else _read(spark, source)
        _ = rows.schema  # Spark Connect analyses a frame only now
        return rows


def _listed(spark: SparkSession, source: FileSource) -> DataFrame:
    """Returns the rows of exactly the files that a manifest names, as of the same point in time."""
    options = dict(source.options)
    store, name = source.open_store(source.path), options.pop(_MANIFEST)
    for _ in range(_LOOKS):
        manifest = _read_manifest(store, name)
        own = options if manifest.pattern is None else {**options, "pathglobfilter": manifest.pattern}
        try:
            rows = _read(spark, replace(source, options=own))
            if len(rows.inputFiles()) == manifest.count:
                return rows
        except (PySparkException, Py4JJavaError):
            if _read_manifest(store, name) == manifest:
                raise
    raise FilesNotFoundError(
        f"`{source.path}` does not hold exactly the {manifest.count} files that {name} lists",
        remedy="If the files are being replaced, run it again; otherwise, write them again",
        details={"path": source.path},
    )


def _read(spark: SparkSession, source: FileSource) -> DataFrame:
    options = dict(source.options)
    schema, hints, wider = (options.pop(each, None) for each in ("schema", "schemahints", "widento"))
    file_format = (options.pop("format", None) or format_of(source.path) or "").lower()
    if not file_format:
        raise InvalidStatementError(
            f"the format of the files is not clear from the ending of `{source.path}`",
            remedy="Give the `format`: parquet, csv, json, orc or text",
        )
    check_options(file_format, options)
    options = {**_DEFAULTS.get(file_format, {}), **options}
    reader = _reader(spark, file_format, options)
    if schema is not None:
        reader = reader.schema(_columns(schema))
    elif hints is not None:
        reader = reader.schema(_found(spark, source, file_format, options, _columns(hints)))
    elif wider is not None:
        reader = reader.schema(_widened(reader.load(source.path).schema, _columns(wider)))
    rows = reader.load(source.path)
    if file_format not in _WITH_FILTERS:
        return rows
    return stored_columns.without_pushdown(rows, rows.schema, tuple(stored_columns.float_paths(rows.schema)))


def _reader(spark: SparkSession, file_format: str, options: Mapping[str, str]) -> DataFrameReader:
    return spark.read.format(file_format).options(**options)


def _found(
    spark: SparkSession, source: FileSource, file_format: str, options: Mapping[str, str], hinted: StructType
) -> StructType:
    """Returns the files' own columns, with the hinted types."""
    hints = {field.name.lower(): field for field in hinted}
    names = {"inferschema": "false"} if file_format == "csv" else {}
    found = _reader(spark, file_format, {**options, **names}).load(source.path).schema
    if file_format == "csv" and any(field.name.lower() not in hints for field in found):
        # Spark must infer some types, which takes a pass over the files.
        found = _reader(spark, file_format, options).load(source.path).schema
    missing = [field for name, field in hints.items() if name not in {each.name.lower() for each in found}]
    if missing and file_format != "json":  # a JSON file has no header: rows omit columns that they lack
        raise ColumnNotFoundError(
            f"the column `{missing[0].name}` does not exist in the files of {source.text}; "
            f"they have {', '.join(f'`{each.name}`' for each in found)}"
        )
    typed = [StructField(each.name, hints.get(each.name.lower(), each).dataType) for each in found]
    return StructType([*typed, *missing])


def _widened(found: StructType, wanted: StructType) -> StructType:
    """Returns the files' own columns; a column gets the wanted type if that type holds all values of the files' type.

    Spark takes the columns of any file, and other files may have narrower or wider types.
    """
    types = {field.name.lower(): field.dataType for field in wanted}
    return StructType([_widest(field, types.get(field.name.lower())) for field in found])


def _widest(field: StructField, wanted: DataType | None) -> StructField:
    if wanted is None:
        return field
    both = kernel_schema(StructType([field, StructField("wanted", wanted)])).fields
    return StructField(field.name, wanted) if is_widening(both[0].type, both[1].type) else field


def _columns(text: str) -> StructType:
    """Parses a list of columns for a reader; `char` and `varchar` become `string`, because readers support neither."""
    declared = StructType.fromDDL(text)
    if not isinstance(declared, StructType):
        raise InvalidStatementError(f"`{text}` is not a list of columns", remedy="Write it as `id bigint, name string`")
    return StructType([StructField(field.name, _unlimited(field.dataType)) for field in declared])


def _unlimited(kind: DataType) -> DataType:
    return StringType() if isinstance(kind, (CharType, VarcharType)) else kind


@contextlib.contextmanager
def _mapped(source: FileSource) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        translated = errors.of_spark(error)
        if isinstance(translated, (StorageError, SparkUnavailableError, SparkEndedError)):
            raise translated from error
        if errors.condition(error).partition(".")[0] in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            raise FilesNotFoundError(
                f"there are no files to read at `{source.path}`, which {source.text} asks for",
                details={"path": source.path},
            ) from error
        remedy = translated.action if isinstance(translated, InvalidStatementError) else None
        raise InvalidStatementError(f"{source.text} cannot be read ({first_line(error)})", remedy=remedy) from error


@dataclass(frozen=True)
class _Manifest:
    """The content of a manifest: a JSON file in a folder that names the files to read in this folder.

    It contains `files`, their paths relative to the folder, and `pattern`, which matches the names of only these files.
    So files that are just being added or deleted are not read.

    Attributes:
        pattern: the pattern of the files' names, unless all files of the folder are read.
        count: the number of files.
    """

    pattern: str | None
    count: int


def _read_manifest(store: Store, name: str) -> _Manifest:
    """Reads the current manifest of a folder.

    Args:
        store: the store of the folder.

    Raises:
        FilesNotFoundError: if the manifest is missing.
        InvalidStatementError: if the file is not a manifest.
        StorageError: if the file cannot be read.
    """
    try:
        given = foreign_json.loads(store.read(name))
        return _Manifest(given.get("pattern"), len(given["files"]))
    except ObjectMissing as error:
        raise FilesNotFoundError(
            f"the manifest {joined(store.root, name)} is missing, which lists the files to read"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidStatementError(
            f"{joined(store.root, name)} is not a manifest: a JSON object with `files`, and a `pattern` of their names"
        ) from error

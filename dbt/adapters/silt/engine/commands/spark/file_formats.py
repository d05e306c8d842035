"""Derives a file's format and compression from its extension, and checks formats of tables and options of readers.

Spark itself silently ignores a misspelled option. The names come from the `*Options` objects of Spark 4, each of which
lists the options that it reads. Options of another package's format are not checked, and neither are settings of
Hadoop, whose names have dots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from dbt.adapters.silt.engine.kernel import near_names
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, UnsupportedStatementError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTING: Final = "silt.file_format"
"""The session's setting `delta` makes tables Delta for which a statement names a format of files."""
_LEAVE_OUT: Final = "Leave USING out (in dbt-spark: `file_format: delta`)"

_SUFFIXES = {"jsonl": "json", "ndjson": "json", "tsv": "csv", "txt": "text"}
_FORMATS = frozenset(("avro", "csv", "json", "orc", "parquet", "text", "xml", "binaryfile"))
_COMPRESSIONS = {
    ".gz": "gzip",
    ".bz2": "bzip2",
    ".zst": "zstd",
    ".lz4": "lz4",
    ".snappy": "snappy",
    ".deflate": "deflate",
}

_OF_ALL: Final = (
    *("pathGlobFilter", "modifiedBefore", "modifiedAfter", "recursiveFileLookup", "basePath"),
    *("ignoreCorruptFiles", "ignoreMissingFiles", "maxPartitionBytes"),
)
_OF_TEXTS: Final = (
    *("charset", "encoding", "multiLine", "mode", "locale", "samplingRatio", "timeZone", "singleVariantColumn"),
    *("dateFormat", "timeFormat", "timestampFormat", "timestampNTZFormat", "columnNameOfCorruptRecord", "compression"),
)
_READ: Final[Mapping[str, tuple[str, ...]]] = {
    "csv": (
        *("header", "sep", "delimiter", "lineSep", "quote", "quoteAll", "escape", "escapeQuotes", "comment"),
        *("charToEscapeQuoteEscaping", "unescapedQuoteHandling", "nullValue", "emptyValue", "nanValue", "positiveInf"),
        *("negativeInf", "inferSchema", "enforceSchema", "preferDate", "enableDateTimeParsingFallback", "extension"),
        *("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "columnPruning", "maxColumns", "maxCharsPerColumn"),
        *("inputBufferSize", "codec", *_OF_TEXTS),
    ),
    "json": (
        *("lineSep", "primitivesAsString", "prefersDecimal", "dropFieldIfAllNull", "inferTimestamp", "allowComments"),
        *("allowUnquotedFieldNames", "allowSingleQuotes", "allowNumericLeadingZeros", "allowUnquotedControlChars"),
        *("allowBackslashEscapingAnyCharacter", "allowNonNumericNumbers", "enableDateTimeParsingFallback"),
        *("ignoreNullFields", "pretty", "sortKeys", "writeNonAsciiCharacterAsCodePoint", "useUnsafeRow"),
        *("explodeEmbeddedArray", *_OF_TEXTS),
    ),
    "xml": (
        *("rowTag", "rootTag", "attributePrefix", "valueTag", "excludeAttribute", "nullValue", "inferSchema"),
        *("preferDate", "prefersDecimal", "ignoreSurroundingSpaces", "ignoreNamespace", "wildcardColName"),
        *("rowValidationXSDPath", "arrayElementName", "declaration", "indent", "validateName", "useLegacyXMLParser"),
        *_OF_TEXTS,
    ),
    "parquet": ("mergeSchema", "datetimeRebaseMode", "int96RebaseMode", "compression"),
    "orc": ("mergeSchema", "compression"),
    "text": ("wholetext", "lineSep", "encoding", "compression"),
    "binaryfile": (),
}


def format_of(path: str) -> str | None:
    """Returns the format that a path's ending names, if any."""
    file = PurePosixPath(path)
    if file.suffix.lower() in _COMPRESSIONS:
        file = file.with_suffix("")
    ending = file.suffix.lower().removeprefix(".")
    found = _SUFFIXES.get(ending, ending)
    return found if found in _FORMATS else None


def compression_of(path: str) -> str | None:
    """Returns the compression that a path's ending names, by its name in Spark's writers, if any."""
    return _COMPRESSIONS.get(PurePosixPath(path).suffix.lower())


def check_options(file_format: str, given: Iterable[str]) -> None:
    """Checks that the reader of the format has all of these options.

    Args:
        file_format: the format in lower case.
        given: the options' names in lower case.

    Raises:
        InvalidArgumentError: if the reader lacks an option.
    """
    if file_format not in _READ:
        return
    known = _options_of(file_format)
    lower = {each.lower() for each in known}
    for name in given:
        if name not in lower and "." not in name:
            raise near_names.unknown(name, known, f"the reader of {file_format} files")


def belongs_to_other_formats(option: str, file_format: str) -> bool:
    """Returns whether the reader of the format lacks an option that the reader of another format has."""
    having = {each for each in _READ if option.lower() in {known.lower() for known in _options_of(each)}}
    return bool(having) and file_format in _READ and file_format not in having


def _options_of(file_format: str) -> tuple[str, ...]:
    return (*_READ[file_format], *_OF_ALL, "schema", "schemaHints", "widenTo", "manifest", "format")


def check_table_format(spark: SparkSession, using: str | None, table: str) -> None:
    """Checks the format that a statement names for a table.

    Args:
        using: the format in lower case; None or empty if the statement names no format.

    Raises:
        UnsupportedStatementError: if it is not Delta, and the session does not make such tables Delta.
        InvalidSettingError: if the session's setting for it is not `delta`.
    """
    if not using or using in ("delta", "silt"):
        return
    value = (spark.conf.get(_SETTING, None) or "").strip("'\"").lower()
    if value not in ("", "delta"):
        raise InvalidSettingError(f"`{_SETTING}` is `{value}`", remedy="Set it to `delta`, or reset it")
    if value and using in _FORMATS:
        return
    raise UnsupportedStatementError(
        f"a table of a warehouse cannot be created `using {using}`: its format is Delta",
        table=table,
        remedy=f"{_LEAVE_OUT}, or let the session make it Delta: `set {_SETTING} = delta`"
        if using in _FORMATS
        else _LEAVE_OUT,
    )

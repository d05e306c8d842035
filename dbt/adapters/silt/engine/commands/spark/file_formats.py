"""Tells a file's format and compression by the ending of its name."""

from __future__ import annotations

from pathlib import PurePosixPath

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


def format_of(path: str) -> str | None:
    """The format that a path's ending names; None if it names none."""
    place = PurePosixPath(path)
    if place.suffix.lower() in _COMPRESSIONS:
        place = place.with_suffix("")
    ending = place.suffix.lower().removeprefix(".")
    found = _SUFFIXES.get(ending, ending)
    return found if found in _FORMATS else None


def compression_of(path: str) -> str | None:
    """The compression that a path's ending names, as Spark's writers call it; None if it names none."""
    return _COMPRESSIONS.get(PurePosixPath(path).suffix.lower())

"""Names the log's files, and encodes and decodes the paths of data files.

Source: the Delta specification, sections "Delta Log Entries", "Checkpoints", "Log Compaction Files" and "Add File and
Remove File". Every reader ignores other names, such as temporary files, checksums of Hadoop's local file system and
folders.
"""

from __future__ import annotations

import enum
import re
import urllib.parse
from dataclasses import dataclass
from typing import Final

LOG_FOLDER: Final = "_delta_log"
SIDECAR_FOLDER: Final = "_delta_log/_sidecars"
LAST_CHECKPOINT: Final = "_delta_log/_last_checkpoint"
LAST_VACUUM_INFO: Final = "_delta_log/_last_vacuum_info"

MOST_VERSION: Final = (1 << 63) - 1
"""The highest 64-bit version; a file name with a higher number does not belong to the log."""

_NAMES = re.compile(
    r"""(?P<version>[0-9]{20})
    (?: (?P<commit>\.json)
      | (?P<checksum>\.crc)
      | \.checkpoint (?: (?P<classic>\.parquet)
                       | \.(?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})\.parquet
                       | \.(?P<uuid>[^./]+)\.(?P<format>json|parquet))
      | \.(?P<last>[0-9]{20})\.compacted\.json
    )""",
    re.VERBOSE,
)
# java.net.URI, which delta-spark uses for paths, quotes these characters and leaves all other characters unchanged.
_QUOTED_IN_PATHS = re.compile(
    '[\x00-\x20\x7f-\xa0"#%<>?\\[\\\\\\]^`{|}\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
)
# delta-rs quotes these characters when it repeats the path of another engine's file in a `remove`.
_QUOTED_ELSEWHERE = re.compile(r"[^\x00-\x7f]|\*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class LogFileKind(enum.Enum):
    """The kind of a file of the log."""

    COMMIT = "commit"
    CHECKSUM = "checksum"
    CLASSIC_CHECKPOINT = "classic checkpoint"
    MULTI_PART_CHECKPOINT = "multi-part checkpoint"
    UUID_CHECKPOINT = "UUID-named checkpoint"
    COMPACTION = "log compaction"


@dataclass(frozen=True)
class LogFileName:
    """A parsed name of a file of the log.

    Args:
        version: the table version; of a compaction, the first version.
        part, parts: number of the part, counted from 1, and number of parts of a multi-part checkpoint.
        last_version: the last version of a compaction.
    """

    kind: LogFileKind
    version: int
    part: int | None = None
    parts: int | None = None
    last_version: int | None = None


def parse_log_name(name: str) -> LogFileName | None:
    """Parses the name of a file directly in the log's folder, or returns None if it is not a file of the log."""
    match = _NAMES.fullmatch(name)
    if match is None or int(match["version"]) > MOST_VERSION:
        return None
    version = int(match["version"])
    if match["commit"]:
        return LogFileName(LogFileKind.COMMIT, version)
    if match["checksum"]:
        return LogFileName(LogFileKind.CHECKSUM, version)
    if match["classic"]:
        return LogFileName(LogFileKind.CLASSIC_CHECKPOINT, version)
    if match["parts"]:
        return LogFileName(LogFileKind.MULTI_PART_CHECKPOINT, version, int(match["part"]), int(match["parts"]))
    if match["uuid"]:
        return LogFileName(LogFileKind.UUID_CHECKPOINT, version)
    return LogFileName(LogFileKind.COMPACTION, version, last_version=int(match["last"]))


def version_prefix(version: int) -> str:
    """Returns the prefix of the names of all files of a version; names of lower versions sort before it."""
    return f"{version:020d}"


def commit_name(version: int) -> str:
    return f"{version_prefix(version)}.json"


def commit_path(version: int) -> str:
    """Returns the path of a version's commit file, relative to the table's root."""
    return f"{LOG_FOLDER}/{commit_name(version)}"


def checkpoint_path(version: int) -> str:
    """Returns the path of a version's classic checkpoint, relative to the table's root."""
    return f"{LOG_FOLDER}/{version_prefix(version)}.checkpoint.parquet"


def uuid_checkpoint_path(version: int, unique: str) -> str:
    """Returns the path of a V2 checkpoint in Parquet, relative to the table's root."""
    return f"{LOG_FOLDER}/{version_prefix(version)}.checkpoint.{unique}.parquet"


def checksum_name(version: int) -> str:
    return f"{version_prefix(version)}.crc"


def checksum_path(version: int) -> str:
    """Returns the path of a version's checksum file, relative to the table's root."""
    return f"{LOG_FOLDER}/{checksum_name(version)}"


def encode_path(path: str) -> str:
    """Encodes a relative path of the file system as delta-spark and Spark do: as the path of a URI."""
    return _QUOTED_IN_PATHS.sub(_quoted, path)


def log_path(path: str) -> str:
    """Encodes a relative path of the file system for this engine's commits, as every engine would.

    If an engine removes a file by another spelling of its path than the `add` has, the file remains in the table for
    readers that compare the spellings.
    """
    return _QUOTED_ELSEWHERE.sub(_quoted, encode_path(path))


def decode_path(path: str) -> str:
    """Decodes a path of the log to a plain name: relative to the table's root, or absolute.

    An absolute path of the local file system loses its `file:` scheme, so that all spellings of a file are equal.
    """
    decoded = urllib.parse.unquote(path)
    if not decoded.startswith("file:"):
        return decoded
    return "/" + decoded.removeprefix("file:").lstrip("/")


def is_absolute(path: str) -> bool:
    """Returns whether a path of the log is absolute."""
    return path.startswith("/") or _SCHEME.match(path) is not None


def inside(location: str) -> str:
    """Returns a folder relative to the root of a database, as a file states it that anybody who may write can write.

    Raises:
        ValueError: if it may be outside of the database.
    """
    if not all(name and name not in (".", "..") for name in location.split("/")) or "\\" in location:
        raise ValueError(f"the location {location!r} is not a folder of the database")
    return location


def absolute_name(root: str, path: str) -> str:
    """Returns the plain absolute name, or URI, of a path of the log of the table whose folder is `root`."""
    name = decode_path(path)
    return name if is_absolute(name) else f"{root.rstrip('/')}/{name}"


def _quoted(match: re.Match[str]) -> str:
    return urllib.parse.quote(match[0], safe="")

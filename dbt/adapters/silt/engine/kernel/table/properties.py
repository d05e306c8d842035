"""TableProperties: `metaData.configuration` with names, types, parsers, defaults and bounds.

Source: the Delta specification, section "Table Properties", and delta-spark's DeltaConfig. Keys that begin with
`delta.` belong to the protocol; all other keys belong to the user and are kept unchanged.

A parser raises ValueError for an invalid value, and names the allowed values.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Generic, TypeVar

from dbt.adapters.silt.engine.kernel.errors import InvalidPropertyError
from dbt.adapters.silt.engine.kernel.near_names import nearest

_UNITS_MS = {
    "microsecond": Decimal("0.001"),
    "millisecond": Decimal(1),
    "second": Decimal(1_000),
    "minute": Decimal(60_000),
    "hour": Decimal(3_600_000),
    "day": Decimal(86_400_000),
    "week": Decimal(604_800_000),
}
_INTERVAL_PART = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([a-z]+)\s*")

CONSTRAINT_PREFIX: Final = "delta.constraints."
FEATURE_PREFIX: Final = "delta.feature."
KEY_PREFIX: Final = "silt.constraints."
CHILD_PREFIX: Final = "silt.referencedBy."
EXPECT_PREFIX: Final = "silt.expect."
DROP_ROW: Final = "drop row"
"""The value of the property `silt.expect.<name>` of a CHECK constraint whose broken rows are left out."""
ENABLEMENT_VERSION: Final = "delta.inCommitTimestampEnablementVersion"
ENABLEMENT_TIMESTAMP: Final = "delta.inCommitTimestampEnablementTimestamp"
_PREFIX: Final = "delta."
_PREFIXES = (CONSTRAINT_PREFIX, FEATURE_PREFIX)
T = TypeVar("T")


class IsolationLevel(enum.Enum):
    """Which concurrent commits conflict (specification: "Isolation Levels"; spelled as in `delta.isolationLevel`)."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


def boolean(text: str) -> bool:
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise ValueError("it must be true or false")
    return folded == "true"


def _integer(text: str, least: int) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,19}\s*", text) or int(text) < least:
        raise ValueError(f"it must be a whole number, at least {least}")
    return int(text)


def positive(text: str) -> int:
    return _integer(text, 1)


def _not_negative(text: str) -> int:
    return _integer(text, 0)


def _at_least_minus_one(text: str) -> int:
    return _integer(text, -1)


def isolation_level(text: str) -> IsolationLevel:
    for level in IsolationLevel:
        if level.value.lower() == text.strip().lower():
            return level
    raise ValueError("it must be one of " + ", ".join(level.value for level in IsolationLevel))


def _mapping_mode(text: str) -> str:
    if text.lower() not in ("none", "name", "id"):
        raise ValueError("it must be one of none, name, id")
    return text.lower()


def checkpoint_policy(text: str) -> str:
    if text.lower() not in ("classic", "v2"):
        raise ValueError("it must be one of classic, v2")
    return text.lower()


def columns(text: str) -> tuple[str, ...]:
    """Splits at commas outside backticks; a name keeps its backticks and dots."""
    names = [name.strip() for name in re.findall(r"((?:`(?:[^`]|``)*`|[^,`])+)", text)]
    return tuple(name for name in names if name)


def interval_ms(text: str) -> int:
    """Parses an interval without months and years, such as `interval 1 week 2 days`."""
    rest = re.sub(r"^\s*interval\s+", "", text.lower())
    total = Decimal(0)
    position = 0
    while position < len(rest):
        match = _INTERVAL_PART.match(rest, position)
        unit = None if match is None else _UNITS_MS.get(match[2].removesuffix("s"))
        if match is None or unit is None:
            raise ValueError(
                "it must be an interval such as `interval 7 days`, in weeks, days, hours, minutes, seconds"
            )
        total += Decimal(match[1]) * unit
        position = match.end()
    if not rest.strip():
        raise ValueError("it must be an interval such as `interval 7 days`")
    return int(total)


def _byte_size(text: str) -> int:
    """Parses a number of bytes, with or without one of Spark's units: `256mb` is `268435456`."""
    match = re.fullmatch(r"\s*([0-9]{1,18})\s*([kmgtp]?)b?\s*", text.lower())
    if match is None or int(match[1]) == 0:
        raise ValueError("it must be a number of bytes above 0, or a number with a unit, such as `256mb`")
    return int(match[1]) << 10 * " kmgtp".index(match[2] or " ")


def _any_text(text: str) -> str:
    return text


class Property(Generic[T]):
    """A property of the protocol, as an attribute of TableProperties.

    Args:
        key: the key in the configuration.
        read: parses the string; raises ValueError if it is not a valid value.
        default: the value if the key is missing in the configuration.
        settable: whether a user may set it; otherwise only the protocol does.
    """

    def __init__(self, key: str, read: Callable[[str], T], default: T, *, settable: bool = True) -> None:
        self.key = key
        self.read = read
        self.default = default
        self.settable = settable

    def __get__(self, properties: TableProperties, owner: type[TableProperties]) -> T:
        text = properties.configuration.get(self.key)
        value: T = self.default if text is None else _read(self.key, text, self.read)
        return value


@dataclass(frozen=True)
class TableProperties:
    """A typed view of a table's configuration.

    Each attribute raises InvalidPropertyError, naming the property, if the configuration contains an invalid
    value. Durations are in milliseconds.
    """

    configuration: Mapping[str, str]

    checkpoint_interval = Property("delta.checkpointInterval", positive, 10)
    """A checkpoint is due at each version that is a multiple of this number."""
    isolation_level = Property("delta.isolationLevel", isolation_level, IsolationLevel.SERIALIZABLE)
    """Which commits of other writers conflict with a commit to this table."""
    append_only = Property("delta.appendOnly", boolean, False)
    """Whether rows may only be added: no DELETE, UPDATE, overwrite or MERGE that changes rows."""
    data_skipping_num_indexed_cols = Property("delta.dataSkippingNumIndexedCols", _at_least_minus_one, 32)
    """The number of leaf columns with statistics; -1 means all leaf columns."""
    data_skipping_stats_columns = Property[tuple[str, ...] | None]("delta.dataSkippingStatsColumns", columns, None)
    """The names, as written, of the columns with statistics; None if `delta.dataSkippingNumIndexedCols` decides."""
    string_prefix_length = Property("delta.dataSkippingStringPrefixLength", _not_negative, 32)
    """The number of characters of a string that are kept in statistics."""
    checkpoint_write_stats_as_json = Property("delta.checkpoint.writeStatsAsJson", boolean, True)
    """Whether checkpoints keep the statistics of files as JSON."""
    checkpoint_write_stats_as_struct = Property("delta.checkpoint.writeStatsAsStruct", boolean, False)
    """Whether checkpoints keep the statistics of files as typed columns."""
    set_transaction_retention_ms = Property[int | None]("delta.setTransactionRetentionDuration", interval_ms, None)
    """The time for which a transaction identifier is kept; None means forever."""
    deleted_file_retention_ms = Property("delta.deletedFileRetentionDuration", interval_ms, 7 * 86_400_000)
    """The time for which VACUUM must keep a removed file for readers of older versions."""
    target_file_size = Property[int | None]("delta.targetFileSize", _byte_size, None)
    """The file size in bytes that OPTIMIZE aims at; None if OPTIMIZE chooses it."""
    log_retention_ms = Property("delta.logRetentionDuration", interval_ms, 30 * 86_400_000)
    """The time for which the log keeps commits that are older than a checkpoint."""
    enable_expired_log_cleanup = Property("delta.enableExpiredLogCleanup", boolean, True)
    """Whether commits older than `delta.logRetentionDuration` are deleted when a checkpoint is written."""
    require_checkpoint_protection_before_version = Property(
        "delta.requireCheckpointProtectionBeforeVersion", _not_negative, 0, settable=False
    )
    """The history before this version is cleaned up completely or not at all; 0 means that no history is protected."""
    checkpoint_policy = Property("delta.checkpointPolicy", checkpoint_policy, "classic")
    """The format of checkpoints: `classic` or `v2`."""
    enable_change_data_feed = Property("delta.enableChangeDataFeed", boolean, False)
    """Whether each commit records which rows it changed, for `table_changes(...)`."""
    enable_deletion_vectors = Property("delta.enableDeletionVectors", boolean, False)
    """Whether DELETE, UPDATE and MERGE may delete rows by a deletion vector instead of rewriting files."""
    enable_row_tracking = Property("delta.enableRowTracking", boolean, False)
    """Whether each row has an id that it keeps when it is updated or moved to another file."""
    enable_in_commit_timestamps = Property("delta.enableInCommitTimestamps", boolean, False)
    """Whether a version's time is stored in its commit, instead of being the time of the commit file."""
    in_commit_timestamp_enablement_version = Property[int | None](
        ENABLEMENT_VERSION, _not_negative, None, settable=False
    )
    """The first version with an in-commit timestamp; None means version 0."""
    in_commit_timestamp_enablement_timestamp = Property[int | None](
        ENABLEMENT_TIMESTAMP, _not_negative, None, settable=False
    )
    """The in-commit timestamp of the first version with an in-commit timestamp."""
    enable_type_widening = Property("delta.enableTypeWidening", boolean, False)
    """Whether ALTER TABLE and schema evolution may widen the type of a column."""
    column_mapping_mode = Property("delta.columnMapping.mode", _mapping_mode, "none")
    """Column names in files: `none`, `name` or `id`; with `name` and `id`, dropping a column rewrites no files."""

    @functools.cached_property
    def constraints(self) -> Mapping[str, str]:
        """The CHECK constraints: SQL condition by constraint name."""
        return {
            key[len(CONSTRAINT_PREFIX) :]: value
            for key, value in self.configuration.items()
            if key.lower().startswith(CONSTRAINT_PREFIX)
        }

    @property
    def expectations(self) -> Mapping[str, str]:
        """The CHECK constraints that leave out the rows that break them: SQL condition by constraint name."""
        dropping = {key for key, value in self.configuration.items() if value == DROP_ROW}
        return {name: text for name, text in self.constraints.items() if f"{EXPECT_PREFIX}{name}" in dropping}


def expectation_properties(names: Iterable[str]) -> dict[str, str]:
    """Returns the properties of CHECK constraints that leave out the rows that break them."""
    return {f"{EXPECT_PREFIX}{name}": DROP_ROW for name in names}


def checked(properties: Mapping[str, str]) -> dict[str, str]:
    """Checks properties that a user sets, and returns them with `delta.` keys in the protocol's spelling.

    Raises:
        InvalidPropertyError: if a `delta.` key is unknown, cannot be set by a user, or has an invalid value; or if a
            key is known apart from its missing or misspelt `delta.`.
    """
    return dict(_checked_entry(key, value) for key, value in properties.items())


def is_settable(key: str) -> bool:
    """Returns whether a user may set the property: it is outside of the protocol, or the protocol lets users set it."""
    folded = key.lower()
    return not folded.startswith("delta.") or folded.startswith(_PREFIXES) or folded in _KNOWN_BY_FOLDED_NAME


def _checked_entry(key: str, value: str) -> tuple[str, str]:
    folded = key.lower()
    if folded.startswith(KEY_PREFIX):
        raise InvalidPropertyError(
            f"the key `{key[len(KEY_PREFIX) :]}` cannot be set as a property",
            remedy="Use a PRIMARY KEY, UNIQUE or FOREIGN KEY clause",
        )
    if folded.startswith(EXPECT_PREFIX):
        raise InvalidPropertyError(
            f"the expectation `{key[len(EXPECT_PREFIX) :]}` cannot be set as a property",
            remedy="Use CONSTRAINT name EXPECT (condition) ON VIOLATION DROP ROW",
        )
    if not folded.startswith(_PREFIX):
        _check_is_own(key)
        return key, value
    for prefix in _PREFIXES:
        if folded.startswith(prefix):
            return prefix + key[len(prefix) :], value
    name = _KNOWN_BY_FOLDED_NAME.get(folded)
    if name is None:
        raise _unknown(key)
    _read(name, value, _KNOWN[name])
    return name, value


def _check_is_own(key: str) -> None:
    """Raises InvalidPropertyError if the key is a known property whose `delta.` is missing or misspelt."""
    first, _, rest = key.lower().partition(".")
    is_bare = f"{_PREFIX}{key.lower()}" in _KNOWN_BY_FOLDED_NAME
    if is_bare or (f"{_PREFIX}{rest}" in _KNOWN_BY_FOLDED_NAME and nearest(first, ("delta",))):
        raise _unknown(key)


def _unknown(key: str) -> InvalidPropertyError:
    near = nearest(key, _KNOWN_BY_FOLDED_NAME.values())
    remedy = None if near is None else f"Did you mean `{near}`?"
    return InvalidPropertyError(f"the table property `{key}` does not exist", remedy=remedy)


def _read(key: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise InvalidPropertyError(f"the table property `{key}` cannot be `{text}`: {error}") from error


OTHERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "delta.autoOptimize.autoCompact": _any_text,
    "delta.autoOptimize.optimizeWrite": boolean,
    "delta.enableIcebergCompatV1": boolean,
    "delta.enableIcebergCompatV2": boolean,
    "delta.enableIcebergCompatV3": boolean,
    "delta.enableVariantShredding": boolean,
    "delta.minReaderVersion": positive,
    "delta.minWriterVersion": positive,
    "delta.parquet.compression.codec": _any_text,
    "delta.parquet.format.version": _any_text,
    "delta.randomPrefixLength": positive,
    "delta.randomizeFilePrefixes": boolean,
    "delta.rowTrackingSuspended": boolean,
    "delta.sampleRetentionDuration": interval_ms,
    "delta.tuneFileSizesForRewrites": boolean,
}
"""The settable properties without an attribute in TableProperties."""
_KNOWN: Final[Mapping[str, Callable[[str], Any]]] = {
    **OTHERS,
    **{each.key: each.read for each in vars(TableProperties).values() if isinstance(each, Property) and each.settable},
}
_KNOWN_BY_FOLDED_NAME = {name.lower(): name for name in _KNOWN}

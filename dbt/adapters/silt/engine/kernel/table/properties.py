"""TableProperties: `metaData.configuration` with names, types, defaults and bounds.

Source: the Delta specification, section "Table Properties", and delta-spark's DeltaConfig. Keys that begin with
`delta.` belong to the protocol; all others are the user's own and are kept as they are.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeVar

from dbt.adapters.silt.engine.kernel.errors import InvalidPropertyError

CONSTRAINT_PREFIX: Final = "delta.constraints."
FEATURE_PREFIX: Final = "delta.feature."
KEY_PREFIX: Final = "silt.constraints."
ENABLEMENT_VERSION: Final = "delta.inCommitTimestampEnablementVersion"
ENABLEMENT_TIMESTAMP: Final = "delta.inCommitTimestampEnablementTimestamp"

_PREFIXES = (CONSTRAINT_PREFIX, FEATURE_PREFIX)

T = TypeVar("T")

_UNITS_MS = {
    "microsecond": Decimal("0.001"),
    "millisecond": Decimal(1),
    "second": Decimal(1_000),
    "minute": Decimal(60_000),
    "hour": Decimal(3_600_000),
    "day": Decimal(86_400_000),
    "week": Decimal(604_800_000),
}
_INTERVAL_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")


class IsolationLevel(enum.Enum):
    """Which concurrent commits conflict (specification: "Isolation Levels"; spelled as in `delta.isolationLevel`)."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


@dataclass(frozen=True)
class TableProperties:
    """A typed view of a table's configuration.

    Each attribute raises InvalidPropertyError, naming the property, where the configuration has an invalid
    value. Durations are in milliseconds.
    """

    configuration: Mapping[str, str]

    @property
    def checkpoint_interval(self) -> int:
        """A checkpoint is due at each version that this number divides."""
        return self._get("delta.checkpointInterval", _positive, 10)

    @property
    def isolation_level(self) -> IsolationLevel:
        return self._get("delta.isolationLevel", _isolation_level, IsolationLevel.SERIALIZABLE)

    @property
    def append_only(self) -> bool:
        return self._get("delta.appendOnly", _boolean, False)

    @property
    def data_skipping_num_indexed_cols(self) -> int:
        """How many leaf columns have statistics; -1 means all of them."""
        return self._get("delta.dataSkippingNumIndexedCols", _at_least_minus_one, 32)

    @property
    def data_skipping_stats_columns(self) -> tuple[str, ...] | None:
        """The columns that have statistics, by name, as written; None where the number of columns decides."""
        return self._get("delta.dataSkippingStatsColumns", _columns, None)

    @property
    def string_prefix_length(self) -> int:
        """How many characters of a string its statistics keep."""
        return self._get("delta.dataSkippingStringPrefixLength", _not_negative, 32)

    @property
    def checkpoint_write_stats_as_json(self) -> bool:
        return self._get("delta.checkpoint.writeStatsAsJson", _boolean, True)

    @property
    def checkpoint_write_stats_as_struct(self) -> bool:
        return self._get("delta.checkpoint.writeStatsAsStruct", _boolean, False)

    @property
    def set_transaction_retention_ms(self) -> int | None:
        """How long a transaction identifier is remembered; None means forever."""
        return self._get("delta.setTransactionRetentionDuration", _interval_ms, None)

    @property
    def deleted_file_retention_ms(self) -> int:
        """How long a removed file must stay, so that readers of older versions find it."""
        return self._get("delta.deletedFileRetentionDuration", _interval_ms, 7 * 86_400_000)

    @property
    def target_file_size(self) -> int | None:
        """How many bytes OPTIMIZE gives a file; None where it decides by itself."""
        return self._get("delta.targetFileSize", _byte_size, None)

    @property
    def log_retention_ms(self) -> int:
        return self._get("delta.logRetentionDuration", _interval_ms, 30 * 86_400_000)

    @property
    def enable_expired_log_cleanup(self) -> bool:
        return self._get("delta.enableExpiredLogCleanup", _boolean, True)

    @property
    def require_checkpoint_protection_before_version(self) -> int:
        """The history before that version is cleaned up all at once or not at all; 0 where none is protected."""
        return self._get("delta.requireCheckpointProtectionBeforeVersion", _not_negative, 0)

    @property
    def checkpoint_policy(self) -> str:
        """`classic` or `v2`."""
        return self._get("delta.checkpointPolicy", _checkpoint_policy, "classic")

    @property
    def enable_change_data_feed(self) -> bool:
        return self._get("delta.enableChangeDataFeed", _boolean, False)

    @property
    def enable_deletion_vectors(self) -> bool:
        return self._get("delta.enableDeletionVectors", _boolean, False)

    @property
    def enable_row_tracking(self) -> bool:
        return self._get("delta.enableRowTracking", _boolean, False)

    @property
    def enable_in_commit_timestamps(self) -> bool:
        return self._get("delta.enableInCommitTimestamps", _boolean, False)

    @property
    def in_commit_timestamp_enablement_version(self) -> int | None:
        """The first version that has an in-commit timestamp; None means version 0."""
        return self._get(ENABLEMENT_VERSION, _not_negative, None)

    @property
    def in_commit_timestamp_enablement_timestamp(self) -> int | None:
        return self._get(ENABLEMENT_TIMESTAMP, _not_negative, None)

    @property
    def enable_type_widening(self) -> bool:
        return self._get("delta.enableTypeWidening", _boolean, False)

    @property
    def column_mapping_mode(self) -> str:
        """`none`, `name` or `id`."""
        return self._get("delta.columnMapping.mode", _mapping_mode, "none")

    @functools.cached_property
    def constraints(self) -> Mapping[str, str]:
        """The CHECK constraints: SQL condition by constraint name."""
        return {
            key[len(CONSTRAINT_PREFIX) :]: value
            for key, value in self.configuration.items()
            if key.lower().startswith(CONSTRAINT_PREFIX)
        }

    def _get(self, key: str, parse: Callable[[str], Any], default: T) -> T:
        text = self.configuration.get(key)
        if text is None:
            return default
        value: T = _parsed(key, text, parse)
        return value


def checked(properties: Mapping[str, str]) -> dict[str, str]:
    """Checks properties that a user sets, and returns them with `delta.` keys in the protocol's spelling.

    Raises:
        InvalidPropertyError: a `delta.` key is unknown, cannot be set by hand, or has an invalid value.
    """
    return dict(_checked_entry(key, value) for key, value in properties.items())


def is_settable(key: str) -> bool:
    """Whether a user may set the property: it is not the protocol's, or the protocol leaves it to users."""
    folded = key.lower()
    return not folded.startswith("delta.") or folded.startswith(_PREFIXES) or folded in _KNOWN_BY_FOLDED_NAME


def _checked_entry(key: str, value: str) -> tuple[str, str]:
    folded = key.lower()
    if folded.startswith(KEY_PREFIX):
        raise InvalidPropertyError(
            f"the key `{key[len(KEY_PREFIX) :]}` cannot be set as a property",
            remedy="Use a PRIMARY KEY, UNIQUE or FOREIGN KEY clause",
        )
    if not folded.startswith("delta."):
        return key, value
    for prefix in _PREFIXES:
        if folded.startswith(prefix):
            return prefix + key[len(prefix) :], value
    name = _KNOWN_BY_FOLDED_NAME.get(folded)
    if name is None:
        raise InvalidPropertyError(f"there is no table property `{key}`")
    _parsed(name, value, _KNOWN[name])
    return name, value


def _parsed(key: str, text: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidPropertyError(f"the table property `{key}` cannot be `{text}`: {error}") from error


def _boolean(text: str) -> bool:
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise ValueError("it is true or false")
    return folded == "true"


def _integer(text: str, least: int) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text) or int(text) < least:
        raise ValueError(f"it is a whole number, at least {least}")
    return int(text)


def _positive(text: str) -> int:
    return _integer(text, 1)


def _not_negative(text: str) -> int:
    return _integer(text, 0)


def _at_least_minus_one(text: str) -> int:
    return _integer(text, -1)


def _isolation_level(text: str) -> IsolationLevel:
    for level in IsolationLevel:
        if level.value.lower() == text.strip().lower():
            return level
    raise ValueError("it is one of " + ", ".join(level.value for level in IsolationLevel))


def _mapping_mode(text: str) -> str:
    if text.lower() not in ("none", "name", "id"):
        raise ValueError("it is one of none, name, id")
    return text.lower()


def _checkpoint_policy(text: str) -> str:
    if text.lower() not in ("classic", "v2"):
        raise ValueError("it is one of classic, v2")
    return text.lower()


def _columns(text: str) -> tuple[str, ...]:
    """Splits at commas outside backticks; a name keeps its backticks and dots."""
    names = [name.strip() for name in re.findall(r"((?:`(?:[^`]|``)*`|[^,`])+)", text)]
    return tuple(name for name in names if name)


def _interval_ms(text: str) -> int:
    """A calendar interval without months and years, such as `interval 1 week 2 days`."""
    rest = re.sub(r"^\s*interval\s+", "", text.lower())
    total = Decimal(0)
    position = 0
    while position < len(rest):
        match = _INTERVAL_PART.match(rest, position)
        unit = None if match is None else _UNITS_MS.get(match[2].removesuffix("s"))
        if match is None or unit is None:
            raise ValueError("it is an interval such as `interval 7 days`, in weeks, days, hours, minutes or seconds")
        total += Decimal(match[1]) * unit
        position = match.end()
    if not rest.strip():
        raise ValueError("it is an interval such as `interval 7 days`")
    return int(total)


def _byte_size(text: str) -> int:
    """A number of bytes, or one with a unit as Spark has them: `256mb` is `268435456`."""
    match = re.fullmatch(r"\s*([0-9]+)\s*([kmgtp]?)b?\s*", text.lower())
    if match is None or int(match[1]) == 0:
        raise ValueError("it is a number of bytes above 0, or one with a unit, such as `256mb`")
    return int(match[1]) << 10 * " kmgtp".index(match[2] or " ")


def _any(text: str) -> str:
    return text


_KNOWN: Mapping[str, Callable[[str], Any]] = {
    "delta.appendOnly": _boolean,
    "delta.autoOptimize.autoCompact": _any,
    "delta.autoOptimize.optimizeWrite": _boolean,
    "delta.checkpoint.writeStatsAsJson": _boolean,
    "delta.checkpoint.writeStatsAsStruct": _boolean,
    "delta.checkpointInterval": _positive,
    "delta.checkpointPolicy": _checkpoint_policy,
    "delta.columnMapping.mode": _mapping_mode,
    "delta.dataSkippingNumIndexedCols": _at_least_minus_one,
    "delta.dataSkippingStatsColumns": _columns,
    "delta.dataSkippingStringPrefixLength": _not_negative,
    "delta.deletedFileRetentionDuration": _interval_ms,
    "delta.enableChangeDataFeed": _boolean,
    "delta.enableDeletionVectors": _boolean,
    "delta.enableExpiredLogCleanup": _boolean,
    "delta.enableIcebergCompatV1": _boolean,
    "delta.enableIcebergCompatV2": _boolean,
    "delta.enableIcebergCompatV3": _boolean,
    "delta.enableInCommitTimestamps": _boolean,
    "delta.enableRowTracking": _boolean,
    "delta.enableTypeWidening": _boolean,
    "delta.enableVariantShredding": _boolean,
    "delta.isolationLevel": _isolation_level,
    "delta.logRetentionDuration": _interval_ms,
    "delta.minReaderVersion": _positive,
    "delta.minWriterVersion": _positive,
    "delta.parquet.compression.codec": _any,
    "delta.parquet.format.version": _any,
    "delta.randomPrefixLength": _positive,
    "delta.randomizeFilePrefixes": _boolean,
    "delta.rowTrackingSuspended": _boolean,
    "delta.sampleRetentionDuration": _interval_ms,
    "delta.setTransactionRetentionDuration": _interval_ms,
    "delta.targetFileSize": _byte_size,
    "delta.tuneFileSizesForRewrites": _boolean,
}
_KNOWN_BY_FOLDED_NAME = {name.lower(): name for name in _KNOWN}

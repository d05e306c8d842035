"""Records the facts of a build, which determine the rows that its commit writes, in the commit's `commitInfo`."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Json, Metadata

INFO_KEY: Final = "build"
"""The field of `commitInfo` for the facts."""

DEFINITIONS_KEY: Final = "readDefinitions"
FILES_KEY: Final = "readFiles"
"""The fields of `commitInfo` for the views, functions and files that a statement has read."""

UNITS_KEY: Final = "units"
"""The field of `commitInfo` of a commit of several statements: transaction identifier -> its statement's own fields."""

ENDED_KEY: Final = "buildEnded"
"""The field of `commitInfo` which states that the hooks after a build have run: its `ends`, and what is unknown."""

CLONED_KEY: Final = "clonedFrom"
"""The field of `commitInfo` of a clone for the id and the version of the table whose rows the clone has."""

KEYS_INFO_KEY: Final = "changedKeys"
"""The field of `commitInfo` for the facts of a statement with CHANGED KEYS."""

CONTENT_INFO_KEY: Final = "content"
"""The field of `commitInfo` for the hash of all rows that the table has after the commit."""

AUDITED_INFO_KEY: Final = "auditedState"
"""The field of `commitInfo` which states that audits have judged all rows that the table has after the commit."""

_NOT_CONTENT: Final = ("comment", "CURRENT_DEFAULT", "delta.generationExpression", "delta.invariants")
_IDENTITY: Final = "delta.identity."

MOST_INPUTS: Final = 1_000
"""How many tables, definitions or lists of files of a build are compared: each may take a request."""

_SCHEMAS: Final = 1_000
"""How many hashes are kept: each node that reads a table compares the table's schema."""


class Effect(Enum):
    """The effect of a second build from the same inputs.

    Attributes:
        REPLACES: the build replaces the table; its rows depend on the inputs only.
        REPEATS: the build changes the table, and a second build from the same inputs leaves the same rows.
        KEEPS: the build compares its rows with the table's, as a snapshot does; a second build changes nothing.
        ADDS: a second build may leave other rows.
    """

    REPLACES = "replaces"
    REPEATS = "repeats"
    KEEPS = "keeps"
    ADDS = "adds"


@dataclass(frozen=True)
class Build:
    """A build that is about to write a table, as its caller describes it.

    Attributes:
        owner: the name of the program's part that builds the table: a node of dbt.
        code: hash of the code and of the configs that determine the rows.
        environment: hash of everything else that determines them: the versions of the package and of Spark, settings of
            sessions.
        effect: the effect of a second build.
        text: the SQL to search for expressions that cannot be repeated, if it is not the statement.
        views: whether temporary views hold rows that the code determines, such as a seed's rows.
        unknown: why the rows may differ in each build, as far as the caller knows.
        at_ms: the time when the build is requested, in milliseconds since 1970-01-01 UTC.
        tolerance_ms: the time after a build in which changes of the rows that it read do not yet require another build,
            in milliseconds.
        portable: hash of the configs and of the environment, without names of schemas, by which the same build of
            another schema is recognised; empty if it is never another schema's.
        query: the query whose relations do not count by their names in that comparison, if any.
        known: the facts, if the texts of the statement do not contain them, as in a clone.
        changed: full names of the relations that statements before the build have changed on its behalf.
        ends: identifies the work that must follow before the build counts; empty if no work follows.
    """

    owner: str
    code: str
    environment: str = ""
    at_ms: int = 0
    effect: Effect = Effect.REPLACES
    text: str | None = None
    views: bool = False
    unknown: tuple[str, ...] = ()
    tolerance_ms: int = 0
    portable: str = ""
    query: str | None = None
    known: BuildFacts | None = None
    changed: frozenset[str] = frozenset()
    ends: str = ""


@dataclass(frozen=True)
class TableState:
    """The state of a table.

    Attributes:
        table_id: the id in the table's metadata; a new table of the same name has another id.
        version: a version of the table.
        schema: hash of the parts of the table's schema that determine rows.
        content: hash of the version's files; None if it is not compared, and empty if the package that recorded the
            state did not record it.
    """

    table_id: str
    version: int
    schema: str
    content: str | None = None

    @classmethod
    def of(cls, metadata: Metadata, version: int, content: str | None = None) -> TableState:
        return cls(metadata.id, version, content_schema(metadata.schema_string), content)


@dataclass(frozen=True)
class BuildFacts:
    """The facts of a build.

    Attributes:
        owner, code, environment: as in `Build`.
        portable: hash of `Build.portable` and of the query, with ids in place of the names of tables; None if it is
            never the same in another schema.
        settings: name of each setting in the environment -> a hash of its value, if the reader must name a change.
        unknown: why the rows may differ in each build.
        day: the date of the build, if the rows depend on it.
        zone: the session's time zone, which determines that date.
        tables: full name of each table that the build read -> its state.
        definitions: full name of each view and function that it read -> its fingerprint.
        files: path of each list of files that it read -> its fingerprint; None if it is unknown.
        ends: as in `Build`; None if no work follows.
    """

    owner: str
    code: str
    environment: str = ""
    unknown: tuple[str, ...] = ()
    day: str | None = None
    zone: str | None = None
    tables: Mapping[str, TableState] = field(default_factory=dict)
    definitions: Mapping[str, str | None] = field(default_factory=dict)
    files: Mapping[str, str | None] = field(default_factory=dict)
    portable: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    ends: str | None = None

    @classmethod
    def of_info(cls, info: CommitInfo, key: str = INFO_KEY) -> BuildFacts | None:
        """Returns the facts in a commitInfo; None if it has no facts, facts in another form, or too many to compare."""
        return cls.of_fields(info.extra, key)

    @classmethod
    def of_fields(cls, fields: Mapping[str, Json], key: str = INFO_KEY) -> BuildFacts | None:
        """Returns the facts in the fields of a commitInfo or of a document; None as in `of_info`."""
        body = fields.get(key)
        if not isinstance(body, Mapping) or not all(isinstance(body.get(each), str) for each in _REQUIRED):
            return None
        if any(len(each) > MOST_INPUTS for each in body.values() if isinstance(each, Mapping | list)):
            return None
        tables = {name: _state(each) for name, each in _mapping(body, "tables").items()}
        unknown, day, zone, portable, ends = (body.get(name) for name in _OPTIONAL)
        unknown = [] if unknown is None else unknown
        definitions, files = (_texts(body, name) for name in _FINGERPRINTS)
        if None in tables.values() or not isinstance(unknown, list) or not isinstance(day, str | None):
            return None
        if definitions is None or files is None:
            return None
        return cls(
            **{name: str(body[name]) for name in _REQUIRED},
            unknown=tuple(map(str, unknown)),
            day=day,
            zone=zone if isinstance(zone, str) else None,
            tables={name: state for name, state in tables.items() if state is not None},
            definitions=definitions,
            files=files,
            portable=portable if isinstance(portable, str) else None,
            settings={name: each for name, each in (_texts(body, "settings") or {}).items() if each is not None},
            ends=ends if isinstance(ends, str) else None,
        )

    def commit_info(self, key: str = INFO_KEY) -> dict[str, Json]:
        """Returns the field for a commit's commitInfo: a single field, so that facts of other statements stay apart."""
        tables = {
            name: {"id": at.table_id, "version": at.version, "schema": at.schema, "content": at.content}
            for name, at in self.tables.items()
        }
        body: dict[str, Any] = {"owner": self.owner, "code": self.code, "environment": self.environment}
        body |= {name: dict(getattr(self, name)) for name in _FINGERPRINTS}
        body |= {"settings": dict(self.settings)} if self.settings else {}
        body |= {"tables": tables} if tables else {}
        body |= {"unknown": list(self.unknown)} if self.unknown else {}
        body |= {} if self.day is None else {"day": self.day, "zone": self.zone}
        body |= {} if self.portable is None else {"portable": self.portable}
        body |= {} if self.ends is None else {"ends": self.ends}
        return {key: body}

    def inputs_info(self) -> dict[str, Json]:
        """Returns the fields of the commitInfo for the definitions and files that the statement itself has read."""
        return {DEFINITIONS_KEY: dict(self.definitions), FILES_KEY: dict(self.files)}


_REQUIRED: Final = ("owner", "code", "environment")
_OPTIONAL: Final = ("unknown", "day", "zone", "portable", "ends")
_FINGERPRINTS: Final = ("definitions", "files")
"""The facts that a commit always states: if they are missing, the commit has facts in another form."""


def local_day(zone: str | None, at_ms: int) -> str | None:
    """Returns the date at a time in a time zone, or None if the zone is unknown here."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, ZoneInfo(zone or "")).date().isoformat()
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def facts_hash(value: object) -> str:
    """Returns a hash of a value of strings, numbers and lists: of code, or of the settings that determine rows."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]


@functools.lru_cache(maxsize=_SCHEMAS)
def content_schema(schema_string: str) -> str:
    """Returns a hash of a schema without the parts that change no row: comments, defaults, rules and counters."""
    kept = json.dumps(_content(json.loads(schema_string)), sort_keys=True)
    return hashlib.sha256(kept.encode()).hexdigest()[:16]


def _content(value: Any) -> Any:
    if isinstance(value, list):
        return [_content(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _metadata(each) if key == "metadata" else _content(each) for key, each in value.items()}


def _metadata(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if key not in _NOT_CONTENT and not key.startswith(_IDENTITY)}


def _state(body: Json) -> TableState | None:
    if not isinstance(body, Mapping):
        return None
    table_id, version, schema = (body.get(name) for name in ("id", "version", "schema"))
    if not isinstance(table_id, str) or type(version) is not int or not isinstance(schema, str):
        return None
    content = body.get("content", "")
    return TableState(table_id, version, schema, content if isinstance(content, str | None) else "")


def _mapping(body: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    found = body.get(name, {})
    return found if isinstance(found, Mapping) else {"": None}


def _texts(fields: Mapping[str, Json], key: str) -> dict[str, str | None] | None:
    found = fields.get(key)
    if not isinstance(found, Mapping):
        return None
    return {name: value if isinstance(value, str) else None for name, value in found.items()}

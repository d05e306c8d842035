"""Audit, Audits and AuditResult: the tests that a commit must pass, and their results, as values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import Any, Final, Literal, TypeVar

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.log.builds import facts_hash
from dbt.adapters.silt.engine.kernel.near_names import nearest

QUARANTINE_SUFFIX: Final = "__quarantine"
"""The end of the name of a table's quarantine table."""

FAILED, RUN_ID, NODE, AT = "_silt_failed", "_silt_run_id", "_silt_node", "_silt_at"
"""The columns that a quarantine table adds to those of its table: names of audits, the run, its node, and the time."""


class Severity(Enum):
    """Whether failing rows are an error or at most a warning, as dbt's config `severity`."""

    ERROR = "error"
    WARN = "warn"


class Scope(Enum):
    """The rows that audits judge.

    Attributes:
        STATE: all rows of the table as the commit would leave it.
        CHANGES: the rows that the commit adds.
    """

    STATE = "state"
    CHANGES = "changes"


class OnFailure(Enum):
    """What happens to a commit whose audits fail.

    Attributes:
        REFUSE: nothing is committed.
        WARN: it is committed, and the results say what failed.
        QUARANTINE: the good rows are committed, and the bad rows to the quarantine table in the same transaction.
    """

    REFUSE = "refuse"
    WARN = "warn"
    QUARANTINE = "quarantine"


@dataclass(frozen=True)
class Limit:
    """How many of a statement's written rows may be quarantined.

    Attributes:
        most: a number of rows, or a percentage of the written rows.
    """

    most: float
    is_percent: bool = False

    @classmethod
    def of(cls, value: object) -> Limit:
        """Returns the limit of a number of rows, or of a text such as `1 %` or `100`.

        Raises:
            InvalidArgumentError: if it is neither, or negative.
        """
        text = str(value).strip()
        is_percent = text.endswith("%")
        try:
            most = float(text.removesuffix("%"))
        except ValueError:
            most = -1.0
        if isinstance(value, bool) or not 0 <= most < float("inf") or not (is_percent or most.is_integer()):
            raise InvalidArgumentError(
                f"max_quarantined cannot be {value!r}", remedy="Use a number of rows, or a percentage such as '1 %'"
            )
        return cls(most, is_percent)

    def allows(self, quarantined: int, written: int) -> bool:
        """Returns whether so many of the rows that a statement would write may be quarantined."""
        return quarantined <= (self.most * written / 100 if self.is_percent else self.most)

    def __str__(self) -> str:
        return f"{self.most:g} %" if self.is_percent else f"{self.most:g}"


@dataclass(frozen=True)
class Audit:
    """A test of a table's rows.

    Attributes:
        name: shown in messages and results.
        query: SQL that returns the failing rows; it names the table by its ordinary name.
        fail_calc: SQL aggregate over the failing rows, which is compared.
        warn_if, error_if: SQL comparison of that number, such as `> 10`.
        limit: the number of failing rows to look at; None looks at all.
        stored_in: SQL name of the table that the failing rows replace, even if the commit is refused; None keeps none.
    """

    name: str
    query: str
    fail_calc: str = "count(*)"
    severity: Severity = Severity.ERROR
    warn_if: str = "!= 0"
    error_if: str = "!= 0"
    limit: int | None = None
    stored_in: str | None = None

    @property
    def fingerprint(self) -> str:
        """A hash of the query and of everything else that determines the verdict; the name and `stored_in` do not."""
        fixed = (self.query, self.fail_calc, self.severity.value, self.warn_if, self.error_if, self.limit)
        return facts_hash(list(fixed))


@dataclass(frozen=True)
class Audits:
    """The audits of a statement's commit, and what follows if they fail.

    Attributes:
        table: SQL name of the table that they judge: statements on other tables are not audited. None judges the table
            that the statement changes.
        refuse_warnings: whether an audit that warns counts as failed.
        max_quarantined: with QUARANTINE: more bad rows refuse the commit.
        run_id, node: the values of `_silt_run_id` and `_silt_node` in quarantined rows.
    """

    audits: tuple[Audit, ...]
    scope: Scope = Scope.STATE
    on_failure: OnFailure = OnFailure.REFUSE
    refuse_warnings: bool = False
    max_quarantined: Limit = field(default_factory=lambda: Limit(1, is_percent=True))
    run_id: str | None = None
    node: str | None = None
    table: str | None = None

    def to_json(self) -> str:
        """Returns the value of the session's setting `silt.audits` that means these audits."""
        body = asdict(self) | {"max_quarantined": str(self.max_quarantined)}
        return json.dumps(body, default=lambda value: value.value)

    @classmethod
    def from_json(cls, text: str) -> Audits:
        """Returns the audits that a text means: an object with the attributes; `audits` is required.

        Raises:
            InvalidArgumentError: if it is not such an object.
        """
        try:
            body = json.loads(text)
        except ValueError as error:
            raise InvalidArgumentError(f"the audits are not JSON: {error}") from error
        given = _checked(body, cls, ("audits",))
        if not isinstance(given["audits"], list):
            raise InvalidArgumentError("`audits` is not a list of audits")
        values = given | {
            "audits": tuple(map(_audit, given["audits"])),
            "scope": _member(Scope, given, "scope", Scope.STATE),
            "on_failure": _member(OnFailure, given, "on_failure", OnFailure.REFUSE),
        }
        if "max_quarantined" in given:
            values["max_quarantined"] = Limit.of(given["max_quarantined"])
        return cls(**values)


Status = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class AuditResult:
    """The verdict of an audit on the rows that were committed, or that a refused commit would have made.

    Attributes:
        status: as dbt's test would report it.
        failures: the value of the audit's `fail_calc`; 0 if it passed.
        message: dbt's words for the verdict; None if it passed.
        quarantined: the number of its failing rows that went to the quarantine table instead.
        stored_in: the table with its failing rows; None if they are not stored.
    """

    name: str
    status: Status
    failures: int = 0
    message: str | None = None
    quarantined: int = 0
    stored_in: str | None = None


_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("name", "query", "fail_calc", "warn_if", "error_if", "run_id", "node", "table", "stored_in"), str),
    "limit": int,
    "refuse_warnings": bool,
}
_OPTIONAL: Final = ("limit", "run_id", "node", "table", "stored_in")

_Member = TypeVar("_Member", bound=Enum)


def _audit(body: object) -> Audit:
    given = _checked(body, Audit, ("name", "query"))
    return Audit(**given | {"severity": _member(Severity, given, "severity", Severity.ERROR)})


def _checked(body: object, kind: type[Audit | Audits], required: tuple[str, ...]) -> dict[str, Any]:
    """Returns an object's members, after a check of their names and types."""
    what = "an audit" if kind is Audit else "audits"
    if not isinstance(body, dict):
        raise InvalidArgumentError(f"{what} must be a JSON object, not {json.dumps(body)}")
    known = [each.name for each in fields(kind)]
    for name, value in body.items():
        if name not in known:
            raise InvalidArgumentError(f"{what} cannot have `{name}`", remedy=_remedy(name, known))
        is_absent = value is None and name in _OPTIONAL
        if name in _TYPES and not is_absent and type(value) is not _TYPES[name]:
            raise InvalidArgumentError(f"`{name}` of {what} cannot be {json.dumps(value)}")
    missing = [name for name in required if name not in body]
    if missing:
        raise InvalidArgumentError(f"{what} must have `{missing[0]}`")
    return dict(body)


def _member(kind: type[_Member], given: Mapping[str, Any], name: str, default: _Member) -> _Member:
    value = given.get(name, default.value)
    known = [each.value for each in kind]
    text = value.lower() if isinstance(value, str) else value
    if text not in known:
        raise InvalidArgumentError(f"`{name}` of audits cannot be {json.dumps(value)}", remedy=_remedy(text, known))
    return kind(text)


def _remedy(name: object, known: list[str]) -> str:
    near = nearest(name, known) if isinstance(name, str) else None
    return f"Use one of {', '.join(known)}" if near is None else f"Did you mean `{near}`?"

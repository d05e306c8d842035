"""The names and kinds of relations; checks names, so that every name stays inside the warehouse."""

from __future__ import annotations

import enum
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, InvalidStatementError
from dbt.adapters.silt.engine.kernel.identifiers import unquote
from dbt.adapters.silt.engine.kernel.printable import is_visible

_PARTS = 3
MAX_NAME_BYTES = 200
"""In UTF-8 bytes: a file's name may have 255, of which documents and their temporary files need some."""


@dataclass(frozen=True, order=True)
class RelationName:
    """The three parts of a table's, view's or function's name, checked, normalized and so comparable.

    Names are case-insensitive: a part is kept in lower case and in Unicode's composed form.

    Raises:
        InvalidNameError: if a part cannot be a name.
    """

    database: str
    schema: str
    identifier: str

    def __post_init__(self) -> None:
        written = f"{self.database}.{self.schema}.{self.identifier}"
        object.__setattr__(self, "database", check_identifier(self.database, "database", written))
        object.__setattr__(self, "schema", check_identifier(self.schema, "schema", written))
        object.__setattr__(self, "identifier", check_identifier(self.identifier, "table or view", written))

    def __str__(self) -> str:
        return f"{self.database}.{self.schema}.{self.identifier}"

    @property
    def quoted(self) -> str:
        """The name in Spark SQL: three parts in backquotes."""
        return f"`{self.database}`.`{self.schema}`.`{self.identifier}`"

    def sibling(self, identifier: str) -> RelationName:
        """Returns another name in the same schema."""
        return RelationName(self.database, self.schema, identifier)


def full_name(text: str) -> RelationName:
    """Parses a full name as `str` writes it: without quotes, and with dots in its last part only.

    Raises:
        InvalidNameError: if it is not a full name.
    """
    parts = text.split(".", _PARTS - 1)
    if len(parts) != _PARTS:
        raise InvalidNameError(
            f"`{_printable(text)}` is not a full name", remedy="It has three parts: database, schema and name"
        )
    return RelationName(*parts)


def completed(parts: Sequence[str], database: str, schema: str) -> RelationName:
    """Returns the full name for the parts of a short name: `table`, `schema.table` or `database.schema.table`.

    Args:
        database, schema: those of a name without them.

    Raises:
        InvalidNameError: if a part cannot be a name.
        InvalidStatementError: if it has more than three parts.
    """
    if len(parts) > _PARTS:
        text = _printable(".".join(parts))
        raise InvalidStatementError(f"`{text}` has more than three parts", remedy="Write it `schema.table`")
    return RelationName(*(database, schema)[: _PARTS - len(parts)], *parts)


def names_text(names: Iterable[RelationName]) -> str:
    """Returns the names as a list for a message."""
    return ", ".join(map(str, names))


def normalize(text: str) -> str:
    """Returns the form in which names are compared and stored: lower case, Unicode NFC."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())


def name_parts(text: str) -> list[str]:
    """Splits a dotted name, as a person writes it: a part in backquotes may contain a dot, and a doubled backquote.

    Raises:
        InvalidNameError: if the text is not a name.
    """
    parts, position = [], 0
    while True:
        part = _PART.match(text, position)
        if part is None:
            raise InvalidNameError(
                f"`{_printable(text)}` is not the name of a table",
                remedy="Write it `schema.table`, or give a folder's path",
            )
        parts.append(unquote(part.group()))
        if part.end() == len(text):
            return parts
        position = part.end() + 1


def check_identifier(text: str, kind: str, relation: str | None = None) -> str:
    """Returns the normalized form of a part of a name.

    Letters of any script, digits, spaces, `_`, `-`, `$` and single dots are allowed, and so are reserved words.

    Args:
        text: the part as the user wrote it, without backquotes.
        kind: the kind of object ("schema", "table or view"), for the message.
        relation: the whole name, for the message.

    Raises:
        InvalidNameError: if the part is empty, too long, or could name anything but a single folder of its own.
    """
    name = normalize(text)
    reason = _why_not(name)
    if reason is not None:
        raise InvalidNameError(
            f"`{_printable(text)}` cannot be the name of a {kind}: {reason}",
            table=_printable(relation if relation is not None else text),
            details={"kind": kind},
        )
    return name


def is_identifier(text: str) -> bool:
    """Returns whether a folder of that name can be a schema or a table: it follows the rules and is normalized."""
    return normalize(text) == text and _why_not(text) is None


def check_new_names(*names: str) -> None:
    """Checks the names of new objects, which follow an additional rule.

    Raises:
        InvalidNameError: if a name has an invisible character, so that it looks like another name.
    """
    for name in names:
        if not is_visible(name):
            raise InvalidNameError(
                f"`{_printable(name)}` cannot be a new name: it contains an invisible character, so it "
                "looks like another name",
                table=_printable(name),
            )


_PART = re.compile(r"(?:`(?:[^`]|``)+`|[^`.]+)(?=\.|\Z)")
_FORBIDDEN = re.compile(r"""[/\\'"`*?\[\]{}:#%<>|]""")  # separators, quotes, and special characters of Hadoop's paths
_VERSION_SUFFIX = re.compile(r"@v?\d+$")
_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")  # control characters, lone surrogates, line and paragraph separators
_SHOWN_CHARACTERS = 60


@lru_cache(maxsize=16_384)
def _why_not(name: str) -> str | None:
    """Returns the first rule that a normalized name breaks, in words, if any."""
    if not name:
        return "it is empty"
    if any(unicodedata.category(character) in _UNPRINTABLE for character in name):
        return "it contains a control character, a line separator or half a character"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"it is longer than {MAX_NAME_BYTES} bytes"
    forbidden = _FORBIDDEN.search(name)
    if forbidden:
        return f"it contains the character {forbidden.group()}"
    return _why_reserved(name)


def _why_reserved(name: str) -> str | None:
    """Returns why a name could be confused with a file of the catalog or the format, if it could."""
    if ".." in name or name.startswith(".") or name.endswith("."):
        return "it begins or ends with a dot, or contains two together"
    if name != name.strip():
        return "it begins or ends with a space"
    if name in ("_delta_log", "_change_data"):
        return "the Delta format uses that name for a folder of its own"
    if name.endswith(".json"):
        return "names that end with .json are the catalog's own documents"
    if _VERSION_SUFFIX.search(name):
        return "its end would be read as a version of a table"
    return None


def _printable(text: str) -> str:
    """Returns the text for a message, with unprintable characters escaped and long text cut."""
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
    return shown if shown.isprintable() else shown.encode("unicode_escape").decode("ascii")


class RelationKind(enum.Enum):
    """Whether a relation is a table or a view."""

    TABLE = "table"
    VIEW = "view"


@dataclass(frozen=True)
class RelationEntry:
    """A table or view that exists."""

    name: RelationName
    kind: RelationKind

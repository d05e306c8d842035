"""Completes names of tables and columns, and words of SQL, while they are typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.answers.sessions import Names
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog

DELIMITERS: Final = " \t\n()=+-*/<>!,;'\"|"
"""The characters that end a word; a dot does not."""

_WORDS: Final = (
    "select from where group by order having limit join left inner full outer on using union all distinct as and or "
    "not in is null like between case when then else end with values insert into overwrite update set delete merge "
    "matched create replace table view schema drop alter explain extended describe history detail show tables columns "
    "use optimize vacuum restore version timestamp of count min max sum avg cast coalesce true false"
).split()
_NAME = re.compile(r"(?:\w+|`[^`]+`)(?:\.(?:\w+|`[^`]+`))*")
_ALIAS = re.compile(r"((?:\w+|`[^`]+`)(?:\.(?:\w+|`[^`]+`))*)(?=\s+(?:as\s+)?(\w+))", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Completer:
    """Completes a word.

    Args:
        names: gives the current meaning of names.
        typed: gives the lines of the statement so far, including the current line.
    """

    names: Callable[[], Names]
    typed: Callable[[], str]

    def candidates(self, word: str) -> list[str]:
        """Returns the completions of the word, sorted; empty if the warehouse cannot be read."""
        try:
            names = self.names()
            found = self._qualified(names, word) if "." in word else self._short(names)
            fitting = {each for each in found if each.lower().startswith(word.lower())}
        except SiltError:
            return []
        words = () if "." in word else (each for each in _WORDS if word and each.startswith(word.lower()))
        in_case = str.upper if word.isupper() else str
        return sorted(fitting) + sorted(each for each in map(in_case, words) if each not in fitting)

    def _short(self, names: Names) -> Iterator[str]:
        yield from _relations(names, names.database, names.schema)
        yield from map(_spelled, names.catalog.schemas(names.database))
        for table in self._mentioned(names).values():
            yield from _columns(table)

    def _qualified(self, names: Names, word: str) -> Iterator[str]:
        before = word.rpartition(".")[0]
        parts = [part.strip("`") for part in before.split(".")]
        table = self._mentioned(names).get(before.lower())
        found: Iterator[str] = iter(())
        if table is not None:
            found = _columns(table)
        elif len(parts) == 1 and names.catalog.has_schema(names.database, parts[0]):
            found = _relations(names, names.database, parts[0])
        elif len(parts) == 1 and parts[0].lower() in names.catalog.databases():
            found = map(_spelled, names.catalog.schemas(parts[0]))
        elif len(parts) == 2 and names.catalog.has_schema(*parts):
            found = _relations(names, *parts)
        return (f"{before}.{each}" for each in found)

    def _mentioned(self, names: Names) -> dict[str, DeltaLog]:
        """Returns the tables that the statement has named so far, by their names and aliases."""
        text = self.typed()
        found = {name.lower(): table for name in _NAME.findall(text) if (table := _table(names, name)) is not None}
        for name, alias in _ALIAS.findall(text):
            if name.lower() in found and alias.lower() not in _WORDS:
                found.setdefault(alias.lower(), found[name.lower()])
        for name in list(found):
            found.setdefault(name.rpartition(".")[2], found[name])
        return found


def _table(names: Names, text: str) -> DeltaLog | None:
    try:
        found = names.find(tuple(part.strip("`") for part in text.split(".")))
    except SiltError:
        return None
    return found if isinstance(found, DeltaLog) else None


def _columns(table: DeltaLog) -> Iterator[str]:
    return map(_spelled, table.snapshot().schema.names)


def _relations(names: Names, database: str, schema: str) -> Iterator[str]:
    return (_spelled(each.name.identifier) for each in names.catalog.relations(database, schema))


def _spelled(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quote(name)

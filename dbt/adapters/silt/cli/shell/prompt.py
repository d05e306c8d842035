"""The shell: reads statements from a terminal, completes names, runs the statements and draws their results."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dbt.adapters.silt.cli.shell import commands, output
from dbt.adapters.silt.cli.shell.statements import Statements
from dbt.adapters.silt.engine.answers.sessions import Names
from dbt.adapters.silt.engine.kernel import owned_folders, printable
from dbt.adapters.silt.engine.kernel.errors import SiltError, StatementSyntaxError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.sql.tokens import split_statements, tokenize
from dbt.adapters.silt.lazy import lazy_module

_MOST: Final = 1_000

_DELIMITERS: Final = " \t\n()=+-*/<>!,;'\"|"
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
"""The number of statements that are kept; at twice that number, the file is shortened."""


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


def _history_file() -> Path:
    """Returns the path of the file, in the user's folder for program state."""
    folder = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(folder).expanduser() / "silt" / "sql_history"


def _load(file: Path) -> list[str]:
    """Returns the last statements, the oldest first; empty if the file cannot be read."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        if len(lines) > 2 * _MOST:
            _write(file, lines[-_MOST:], os.O_TRUNC)
    except OSError:  # a shell works without a history
        return []
    return lines[-_MOST:]


def add(file: Path, statement: str) -> None:
    """Adds a statement; does nothing if the file cannot be written."""
    try:
        owned_folders.create(os.fspath(file.parent))
        _write(file, [statement], os.O_APPEND)
    except OSError:  # as in `_load`
        return


def as_one_line(statement: str) -> str | None:
    """Returns the statement on a single line, or None if it would then have another meaning."""
    joined = " ".join(line.strip() for line in statement.splitlines())
    try:
        same = [token.text for token in tokenize(joined)] == [token.text for token in tokenize(statement)]
    except StatementSyntaxError:
        return None
    return joined if same else None


def _write(file: Path, lines: list[str], how: int) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | how, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as out:
        os.fchmod(out.fileno(), 0o600)
        out.writelines(f"{line}\n" for line in lines)


readline = lazy_module("readline")

_USUAL_COLUMNS: Final = 80
_FIRST, _MORE = "silt> ", "   -> "
_WELCOME: Final = "A statement ends with a semicolon; `help` shows more, Ctrl-D ends the shell."


@dataclass
class Prompt:
    """The typed lines, and the statements in them."""

    statements: Statements
    _lines: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Runs statements until the user leaves."""
        self._prepare()
        print(_WELCOME)
        while (text := self._next_text()) is not None:
            self._answer(text)

    def _next_text(self) -> str | None:
        """Returns the next complete text, or None at the end."""
        while True:
            try:
                line = input(_MORE if self._lines else _FIRST)
            except KeyboardInterrupt:
                print()
                self._lines.clear()
                continue
            except EOFError:
                print()
                return None
            self._lines.append(line)
            text = "\n".join(self._lines)
            if not text.strip():
                self._lines.clear()
            elif commands.is_command(text) or is_whole(text):
                self._lines.clear()
                self._remember(text)
                return None if text.strip().rstrip("; ").lower() in commands.QUIT else text

    def _answer(self, text: str) -> None:
        """Runs the statements of an input, up to the first failure."""
        try:
            if commands.is_command(text):
                self._print(commands.command_lines(text, self.statements.names, terminal_columns()))
                return
            for statement in split_statements(text):
                started = time.monotonic()
                result = self.statements.run(statement, output.MOST_COUNTED)
                self._print(lines(result, terminal_columns(), output.MOST_COUNTED))
                print(f"{time.monotonic() - started:.1f} s", file=sys.stderr)
        except (KeyboardInterrupt, output.CancelledError):
            print("cancelled", file=sys.stderr)
        except (SiltError, output.StatementFailedError) as error:
            print(printable.lines(str(error)), file=sys.stderr)

    def _print(self, found: Iterator[str]) -> None:
        for each in found:
            print(each)

    def _remember(self, text: str) -> None:
        typed = as_one_line(text) if not commands.is_command(text) else text.strip()
        for line in [typed] if typed is not None else text.splitlines():
            readline.add_history(line)
            add(_history_file(), line)

    def _prepare(self) -> None:
        """Sets up the line editor: history, and completion by the tab key."""
        readline.set_auto_history(False)
        for line in _load(_history_file()):
            readline.add_history(line)
        completer = Completer(
            lambda: self.statements.names, lambda: "\n".join([*self._lines, readline.get_line_buffer()])
        )
        found: list[str] = []

        def complete(word: str, state: int) -> str | None:
            if state == 0:
                found[:] = completer.candidates(word)
            return found[state] if state < len(found) else None

        readline.set_completer(complete)
        readline.set_completer_delims(_DELIMITERS)
        readline.parse_and_bind("tab: complete")


def is_whole(text: str) -> bool:
    """Returns whether the input ends with a semicolon that is not in a string, a name or a comment."""
    try:
        tokens = tokenize(text)
    except StatementSyntaxError:  # a string, a name or a comment is open
        return False
    return len(tokens) > 1 and tokens[-2].word == ";"


def lines(result: output.Result, columns: int | None, most: int) -> Iterator[str]:
    """Returns the lines that show a result.

    Args:
        columns: the width of the terminal, if any.
        most: the maximum number of rows that were computed.
    """
    if isinstance(result, output.RowsFound) and result.note and not result.rows.num_rows:
        yield result.note
    elif isinstance(result, output.RowsFound):
        yield from output.drawn(result.rows, columns)
        if columns is not None:
            yield output.summary(result.rows.num_rows, most)
    elif isinstance(result, output.Change):
        yield result.text
    else:
        yield from result.lines


def terminal_columns() -> int | None:
    """Returns the width of the terminal, or None if the output is not a terminal."""
    if not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL_COLUMNS
    except OSError:  # the width is unknown
        return _USUAL_COLUMNS


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

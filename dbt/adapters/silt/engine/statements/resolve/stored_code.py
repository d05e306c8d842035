"""Refuses forbidden code in stored views, SQL functions and statements, before Spark sees their SQL.

Any user who can write a catalog can write a view, which then runs as the user who reads it, or a statement that a
published run has left, which runs as the user who publishes or continues the run.
`engine.sql.query.stored_texts` has the rules on the tokens of the SQL; this module has the rules on the meaning of
names. Every session may read the views over the folders that `external` models have written.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.catalog.names.documents import Function
from dbt.adapters.silt.engine.commands.spark.file_formats import format_of
from dbt.adapters.silt.engine.kernel import errors, owned_folders
from dbt.adapters.silt.engine.kernel.files.data_files import is_allowed
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.query import stored_texts
from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.engine.sql.query.rule_texts import problem
from dbt.adapters.silt.engine.sql.query.scans import Reference
from dbt.adapters.silt.engine.sql.query.table_functions import FilesCall
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace

_OF_FILES: Final = re.compile(r"parquet\.(bloom|block|page|enable|dictionary|compression)|orc\.(bloom|compress|stripe)")
"""Settings of Hadoop, in lower case, about the internals of files; other settings name classes and hosts."""

_OF_FILES_REMEDY: Final = (
    "SQL that another user stored can name any file that you may read. If you trust its author, declare the "
    "files as a source of the project, or set `external_paths: true` in the profile; in a program, name them in "
    "`WarehouseSettings(file_locations={...})`"
)

_STORED: Final = (
    *(ast.Insert, ast.Update, ast.Delete, ast.Merge, ast.Truncate, ast.Optimize, ast.Vacuum),
    *(ast.CommentOn, ast.SetProperties, ast.UnsetProperties),
)
"""The kinds of statements that may be stored."""

_named: set[str] = set()
"""Files read by views and functions that this process itself has created: their creator may read them."""


MARKER: Final = "_dbt_silt.json"
"""The file in such a folder that names the model that wrote it."""
_OF_PATTERNS: Final = re.compile(r"[*?\[\]{}\\]")


@dataclass(frozen=True)
class NamedFiles(Container[str]):
    """The files, and folders of tables, that the user of this process has named.

    Attributes:
        declared: the files that a project or program declares, each as written in SQL.
    """

    declared: Container[str] = ()

    def __contains__(self, location: object) -> bool:
        return location in _named or location in self.declared


@dataclass(frozen=True)
class Allowed:
    """The permissions of the SQL that a catalog stores.

    Args:
        python: whether functions in Python may be called.
        stored_code: whether views, SQL functions and statements may run scripts, call Java methods, and read by any
            provider; and whether a statement may be of any kind.
        external_paths: whether they may read files, and tables by their paths, at any location.
        file_locations: otherwise, the files and folders that it may read, each as written in the SQL.
    """

    python: bool = False
    stored_code: bool = False
    external_paths: bool = False
    file_locations: Container[str] = ()

    def check_text(self, text: str, owner: str) -> None:
        """Checks that the query of a view, or the body of a function, runs no code and hides no name.

        Args:
            owner: the view or function, for messages.

        Raises:
            StoredCodeError: if it runs code or hides a name.
            StatementSyntaxError: if it cannot be split into tokens.
        """
        if not self.stored_code:
            _refuse(stored_texts.forbidden(text), owner)

    def check_statement(self, statement: ast.Statement, namespace: Namespace, owner: str) -> None:
        """Checks that a statement changes the rows or properties of a table of the warehouse, or maintains it.

        Its queries and conditions are checked when they are resolved.

        Args:
            owner: the program that has stored the statement, for messages.

        Raises:
            StoredCodeError: if it is of another kind, or about another table.
        """
        if self.stored_code:
            return
        if not isinstance(statement, _STORED):
            _refuse(f"`{statement.text.split(maxsplit=1)[0]}`", owner)
        elif ast.is_path(statement.table) or namespace.name_in_warehouse(statement.table) is None:
            _refuse(f"the table `{'.'.join(statement.table)}` outside of the warehouse", owner)

    def check_function(self, function: Function) -> None:
        """Checks that the function is in a permitted language, and that its statement runs no other code.

        Raises:
            UnsupportedStatementError: if it is in Python.
            StoredCodeError: if its text runs code, or hides a name.
            StatementSyntaxError: if its text cannot be split into tokens.
        """
        owner = str(function.name)
        if function.python is not None and not self.python:
            raise errors.UnsupportedStatementError(
                "Python functions are disabled",
                table=owner,
                remedy="Set `python_functions: true` in the profile to allow them; "
                "everyone who can write to the warehouse can then run code",
            )
        if not self.stored_code:
            _refuse(stored_texts.forbidden_in_signature(function.parameters, function.returns), owner)
        if function.python is None:
            self.check_text(function.body, owner)

    def check_reference(self, reference: Reference, namespace: Namespace, owner: str) -> None:
        """Checks that a reference in stored SQL runs no code, and reads only files that the SQL may read.

        Raises:
            ExternalPathError: if its files, or the table that it names by a path, are at a forbidden location.
            StoredCodeError: if the files' reader, or the expression of a version, may run code.
        """
        if reference.files is not None:
            _refuse(None if self.stored_code else _reader(reference.files), owner)
            self._check_files(reference.files.path, owner)
        elif reference.is_path and not is_allowed(namespace.catalog.store_at(reference.parts[1])):
            self._check_files(reference.parts[1], owner)
        if self.stored_code:
            return
        for text in reference.bounds:
            _refuse(problem(text), owner)

    def check_sparks(self, reference: Reference, namespace: Namespace, owner: str) -> None:
        """Checks that a relation outside the warehouse is a table of Spark, or files of a plain format.

        Raises:
            ExternalPathError: if the files are at a forbidden location.
            RelationNotFoundError: if it is neither a table nor the name of a provider and a path.
            StoredCodeError: if another provider would read it, or its reader is given options.
        """
        name = reference.parts
        if not self.stored_code and reference.options is not None:
            _refuse("options (`with (...)`)", owner)
        if len(name) != 2 or namespace.spark.catalog.tableExists(".".join(map(quote, name))):
            return
        if name[0].lower() in stored_texts.FILE_FORMATS:
            self._check_files(name[1], owner)
        elif not self.stored_code and stored_texts.names_files(name):
            _refuse(f"the provider `{name[0]}`", owner)
        elif not self.stored_code:
            raise errors.RelationNotFoundError("the table or view does not exist", table=".".join(name))

    @property
    def named_files(self) -> NamedFiles:
        return NamedFiles(self.file_locations)

    def _check_files(self, location: str, owner: str) -> None:
        if not (self.external_paths or location in self.named_files or is_exported(location)):
            raise errors.ExternalPathError(
                f"its SQL reads `{location}`, which is not in the warehouse", table=owner, remedy=_OF_FILES_REMEDY
            )


def name_files(text: str) -> None:
    """Records the files named by a statement of this process that creates a view or function of the text.

    Raises:
        StatementSyntaxError, UnsupportedStatementError: as raised by `table_references`.
    """
    _named.update(location for each in table_references(text) if (location := _location(each)) is not None)


def _location(reference: Reference) -> str | None:
    """Returns the files, or the folder of a table, that it names by a path, if any."""
    if reference.files is not None:
        return reference.files.path
    return reference.parts[1] if reference.is_path or stored_texts.names_files(reference.parts) else None


def _reader(files: FilesCall) -> str | None:
    """Returns the argument of a `read_files` call to its reader that may run code, if any."""
    file_format = (files.options.get("format") or format_of(files.path) or "").lower()
    if file_format and file_format not in stored_texts.FILE_FORMATS:
        return f"the provider `{file_format}`"
    return next((f"the option `{name}`" for name in files.options if "." in name and not _OF_FILES.match(name)), None)


def _refuse(found: str | None, owner: str) -> None:
    if found is not None:
        raise errors.StoredCodeError(f"its SQL contains {found}, which is not allowed in stored SQL", table=owner)


def is_exported(location: str) -> bool:
    """Returns whether it is a folder with a model's marker, in which no link and no other user's file leads elsewhere.

    Another user's view could name any folder; a folder with links to private files is not such a folder.

    Args:
        location: the location as the view's SQL names it.
    """
    if not os.path.isabs(location) or os.path.normpath(location) != location or _OF_PATTERNS.search(location):
        return False
    try:
        if not stat.S_ISREG(os.lstat(os.path.join(location, MARKER)).st_mode) or os.path.islink(location):
            return False
        return owned_folders.problem(location) is None and not any(_is_link(each) for each in _entries(location))
    except OSError:
        return False


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for each in entries:
            yield each
            if each.is_dir(follow_symlinks=False):
                yield from _entries(each.path)


def _is_link(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() or not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False))

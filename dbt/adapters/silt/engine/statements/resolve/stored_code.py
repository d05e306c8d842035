"""Refuses what stored views and SQL functions may not do, before Spark sees their texts.

Whoever can write a catalog can write a view, which then runs as the user that reads it. What the tokens of a text show
is found by `engine.sql.query.stored_texts`; here is what depends on the meaning of names.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.catalog.documents import Function
from dbt.adapters.silt.engine.commands.spark.file_formats import format_of
from dbt.adapters.silt.engine.kernel.errors import (
    ExternalPathError,
    RelationNotFoundError,
    StoredCodeError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.files.data_files import is_allowed
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.query import stored_texts
from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.engine.sql.query.rule_texts import problem
from dbt.adapters.silt.engine.sql.query.scans import Reference
from dbt.adapters.silt.engine.sql.query.table_functions import FilesCall
from dbt.adapters.silt.engine.statements.resolve.exported_folders import is_exported
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace

_OF_FILES: Final = re.compile(r"parquet\.(bloom|block|page|enable|dictionary|compression)|orc\.(bloom|compress|stripe)")
"""Settings of Hadoop, in lower case, that are about the insides of files; others name classes and hosts."""

_OF_FILES_REMEDY: Final = (
    "A text that somebody else stored can name any file that you may read. If you trust whoever wrote it, declare the "
    "files as a source of the project, or set `external_paths: true` in the profile; in a program, name them in "
    "`WarehouseSettings(file_locations={...})`"
)

_named: set[str] = set()
"""The files that views and functions read which this process itself has made: who could make them may read them."""


@dataclass(frozen=True)
class Allowed:
    """What the texts that a catalog keeps may do.

    Args:
        python: whether functions in Python may be called.
        stored_code: whether views and SQL functions may run scripts, call methods of Java, and read by any provider.
        external_paths: whether they may read files, and tables by their paths, anywhere.
        file_locations: else the files and folders that they may read, each as the text has it.
    """

    python: bool = False
    stored_code: bool = False
    external_paths: bool = False
    file_locations: Container[str] = ()

    def check_text(self, text: str, owner: str) -> None:
        """Passes if the query of a view, or the body of a function, runs no code and hides no name.

        Args:
            owner: the view or the function, for messages.

        Raises:
            StoredCodeError: it does.
            StatementSyntaxError: it cannot be split into tokens.
        """
        if not self.stored_code:
            _refuse(stored_texts.forbidden(text), owner)

    def check_function(self, function: Function) -> None:
        """Passes if the function is in a language that may be run, and its statement runs no other code.

        Raises:
            UnsupportedStatementError: it is in Python.
            StoredCodeError: its text runs code, or hides a name.
            StatementSyntaxError: its text cannot be split into tokens.
        """
        owner = str(function.name)
        if function.python is not None and not self.python:
            raise UnsupportedStatementError(
                "Python functions are disabled",
                table=owner,
                remedy="Set `python_functions: true` in the profile to allow them; "
                "all who can write the warehouse can then run code",
            )
        if not self.stored_code:
            _refuse(stored_texts.forbidden_in_signature(function.parameters, function.returns), owner)
        if function.python is None:
            self.check_text(function.body, owner)

    def check_reference(self, reference: Reference, namespace: Namespace, owner: str) -> None:
        """Passes if what a stored text asks of a relation runs no code, and its files are where it may read them.

        Raises:
            ExternalPathError: its files, or the table that it names by a path, are elsewhere.
            StoredCodeError: the files' reader, or the expression of a version, may run code.
        """
        if reference.files is not None:
            _refuse(None if self.stored_code else _reader(reference.files), owner)
            self._check_files(reference.files.path, owner)
        elif reference.is_path and not is_allowed(namespace.catalog.store_at(reference.parts[1])):
            self._check_files(reference.parts[1], owner)
        if self.stored_code:
            return
        for text in (reference.version, reference.timestamp, *(reference.changes or ())):
            _refuse(None if text is None else problem(text), owner)

    def check_sparks(self, reference: Reference, namespace: Namespace, owner: str) -> None:
        """Passes if a relation outside of the warehouse is a table of Spark's, or files of a plain format.

        Raises:
            ExternalPathError: the files are elsewhere than where it may read them.
            RelationNotFoundError: it is neither a table nor the name of a provider and a path.
            StoredCodeError: another provider would read it, or its reader is given options.
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
            raise RelationNotFoundError("there is no such table or view", table=".".join(name))

    def _check_files(self, location: str, owner: str) -> None:
        is_named = location in _named or location in self.file_locations
        if not (self.external_paths or is_named or is_exported(location)):
            raise ExternalPathError(
                f"its text reads `{location}`, which is not in the warehouse", table=owner, remedy=_OF_FILES_REMEDY
            )


def name_files(text: str) -> None:
    """Notes the files that a statement of this process names, which makes a view or a function of the text.

    Raises:
        StatementSyntaxError, UnsupportedStatementError: as `table_references`.
    """
    _named.update(location for each in table_references(text) if (location := _location(each)) is not None)


def _location(reference: Reference) -> str | None:
    """Returns the files, or the folder of a table, that it names by a path; None if it names neither."""
    if reference.files is not None:
        return reference.files.path
    return reference.parts[1] if reference.is_path or stored_texts.names_files(reference.parts) else None


def _reader(files: FilesCall) -> str | None:
    """Returns what a call of `read_files` gives its reader that may run code."""
    file_format = (files.options.get("format") or format_of(files.path) or "").lower()
    if file_format and file_format not in stored_texts.FILE_FORMATS:
        return f"the provider `{file_format}`"
    return next((f"the option `{name}`" for name in files.options if "." in name and not _OF_FILES.match(name)), None)


def _refuse(found: str | None, owner: str) -> None:
    if found is not None:
        raise StoredCodeError(f"its text holds {found}, which a stored view or function may not", table=owner)

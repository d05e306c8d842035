"""The transaction of a session: the branch on which its statements work until it is committed or rolled back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeGuard

from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.branch_database import COPY
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName, normalize
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.publication.branch_changes import OUTSIDE, check_can_optimize
from dbt.adapters.silt.engine.kernel.publication.publish import OF_STATEMENTS, OF_TRANSACTIONS, Isolation, Txn
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog, branch_of
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Effect, Name, Statement
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace, WarehouseTable, WarehouseView

BRANCH_SETTING: Final = "silt.branch"
"""The session's setting: the id of the run on whose branch its statements work."""

_LATER: Final = (
    "Run it outside of the transaction; the config `after_publish` of a dbt node runs it when the run is published"
)

_ON_NAMES = (ast.CreateView, ast.AlterViewQuery, ast.DropView, ast.CreateFunction, ast.DropFunction)


@dataclass
class SessionTransaction:
    """The transaction of a session, if one has begun.

    Args:
        main: the catalog outside of the transaction.
    """

    main: Catalog
    _branch: Branch | None = field(default=None, init=False)
    _catalog: Catalog | None = field(default=None, init=False)
    _database: str = field(default="", init=False)
    _txn: Txn = field(default=None, init=False)
    _is_of_run: bool = field(default=False, init=False)
    _is_joined: bool = field(default=False, init=False)
    _home: Branch | None = field(default=None, init=False)
    _is_read_only: bool = field(default=False, init=False)
    _isolation: Isolation = field(default=OF_TRANSACTIONS, init=False)

    @property
    def catalog(self) -> Catalog:
        """The catalog in which statements look up their tables."""
        return self._catalog or self.main

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and has not ended."""
        return self._branch is not None

    @property
    def is_joined(self) -> bool:
        """Whether the statements work on the branch of a run that `switch` has joined."""
        return self._is_joined

    def begin(self, database: str, txn: Txn = None) -> None:
        """Begins a transaction over the tables of a database.

        Args:
            txn: the identifier that the transaction records in each table that it changes.

        Raises:
            InvalidStatementError: if a transaction is open.
            ReadOnlyStorageError: if the database is read-only.
        """
        self._check_none_is_open()
        branch = self.main.new_branch(database)
        self._branch, self._catalog, self._txn = branch, self.main.on_branch(database, branch), txn
        self._database = normalize(database)

    def begun(self, database: str, txn: Txn = None) -> SessionTransaction:
        """Returns a new transaction, next to this session, in which no transaction is open; see `begin`."""
        self._check_none_is_open()
        other = SessionTransaction(self.main)
        other.begin(database, txn)
        return other

    def of_statement(self, database: str) -> SessionTransaction:
        """Returns a transaction for a single statement that writes two tables: it reads the tables as without it."""
        other = self.begun(database)
        other._isolation = OF_STATEMENTS
        return other

    @property
    def _is_on_named_branch(self) -> bool:
        return self._branch is not None and self._branch.named is not None

    @property
    def is_of_statement(self) -> bool:
        """Whether the transaction contains nothing but a single statement."""
        return self.is_open and self._isolation is OF_STATEMENTS

    def _check_none_is_open(self) -> None:
        if self.is_open:
            raise errors.InvalidStatementError(
                "a transaction is open, and a transaction cannot contain another",
                remedy=self._without_begin if self._is_of_run else "Run `commit` or `rollback` first",
            )

    @property
    def _without_begin(self) -> str:
        if self._is_on_named_branch:
            return (
                "Leave `begin` out: on a branch, statements are committed one by one, and `silt merge` publishes them"
            )
        return "Leave `begin` out: a run is a transaction"

    def join(self, database: str, branch: Branch, is_read_only: bool = False) -> None:
        """Lets all statements work on the branch of a run, or on a named branch, whose end is not the end of this
        session. A session that begins on a named branch returns to it when it leaves another branch.

        Args:
            is_read_only: whether they can only read: the run does not know of this session.
        """
        self._is_read_only, self._is_joined = is_read_only, branch.named is not None
        self._home = branch if self._is_joined and self._branch is None else self._home
        self._branch, self._catalog, self._is_of_run = branch, self.main.on_branch(database, branch), True
        self._database = normalize(database)

    def for_another_session(self) -> SessionTransaction:
        """Returns the transaction of another session, which works on the branch of the same run, if any."""
        other = SessionTransaction(self.main)
        if self._branch is not None and self._is_of_run:
            other.join(self._database, self._branch, self._is_read_only)
            other._is_joined, other._home = self._is_joined, self._home
        return other

    def switch(self, database: str, run_id: str) -> None:
        """Lets all statements work on the branch of a run, next to the run's own process; an empty id ends that.

        Raises:
            InvalidStatementError: if a transaction is open, or the session belongs to a run.
            RunNotFoundError, ConcurrentModificationError, SiltError: as `RunBranches.join`.
        """
        if self.is_open and not self._is_joined:
            whose = "the statements belong to a run" if self._is_of_run else "a transaction is open"
            raise errors.InvalidStatementError(f"{whose}, so `{BRANCH_SETTING}` cannot be set", remedy="End it first")
        branch, home = self.main.named_branches(database).join(run_id) if run_id else self._home, self._home
        self.leave()
        if branch is not None:
            self.join(database, branch)
            self._home, self._is_joined = home, True

    def leave(self) -> None:
        """Lets later statements work outside of the branch of the run that `join` has joined."""
        self._branch = self._catalog = None
        self._is_of_run = self._is_joined = False

    def check_joined(self, statement: Statement, is_done: bool = False) -> None:
        """Checks that the run on whose branch this session works has not ended.

        Args:
            is_done: whether the statement was run.

        Raises:
            ConcurrentModificationError: if it has ended.
            CommitStateUnknownError: if it ended while a statement made its change, which may be part of it.
        """
        if self._is_read_only and self._branch is not None and self._branch.attempts.have_ended():
            raise errors.ConcurrentModificationError("the run was published or dropped", remedy="Leave `--run` out")
        if not self._is_joined or isinstance(statement, (ast.SetSetting, ast.ResetSetting)):
            return
        assert self._branch is not None
        if is_done:
            self._branch.attempts.check_done()
        else:
            self._branch.attempts.check_open()

    @property
    def ends_with_session(self) -> bool:
        """Whether a transaction is open that ends with the session at the latest."""
        return self.is_open and not self._is_of_run

    def commit(self) -> dict[str, int]:
        """Publishes the changes; returns the new version of each changed table, by its name.

        After an error the transaction has ended as well.

        Raises:
            InvalidStatementError: if no transaction is open.
            SiltError: see `publish`; nothing is applied unless the error states otherwise.
        """
        branch = self._ended("committed")
        try:
            return branch.publish(self._txn, self._isolation)
        except (errors.CommitStateUnknownError, errors.StorageError):
            raise  # a commit of a request whose answer was lost may still arrive, and needs its files
        except errors.SiltError:
            branch.discard()
            raise

    def rollback(self) -> None:
        """Drops the changes.

        Raises:
            InvalidStatementError: if no transaction is open.
        """
        self._ended("rolled back").discard()

    def check(self, statement: Statement, namespace: Namespace) -> BranchLog | None:
        """Checks that a statement can be part of the open transaction; returns the table that it changes, if any.

        Raises:
            UnsupportedStatementError: if a transaction cannot contain the statement, or the session only looks at a
                run.
            RelationNotFoundError: if the statement's table does not exist.
        """
        if statement.effect is None or isinstance(statement, (ast.Commit, ast.Unrecognised)):
            return None
        if self._is_read_only and not _is_temporary(statement, namespace):
            raise errors.UnsupportedStatementError(
                f"{_first_words(statement)} changes the run, and `silt sql --run` only shows it",
                remedy=f"Leave `--run` out, and begin with `set {BRANCH_SETTING} = '...'` and the id of the run",
            )
        if isinstance(statement, ast.CreateSchema) or _is_temporary(statement, namespace):
            return None
        if isinstance(statement, ast.DropSchema):
            self._check_schema(statement, namespace)
            return None
        if self._is_on_named_branch and isinstance(statement, ast.Rename):
            self._checked_name(statement.name, namespace)
            return None
        name = statement.table if isinstance(statement, ast.Optimize) else statement.changed_table
        changed_name = _changed_name(statement, namespace)
        if changed_name is not None:
            return self._changed_table(statement, self._checked_name(changed_name, namespace))
        is_other = statement.effect is Effect.OTHER and not isinstance(statement, ast.Optimize)
        if is_other or name is None:
            raise _not_contained(statement)
        meaning = namespace.meaning(name)
        log = branch_of(meaning.log) if isinstance(meaning, WarehouseTable) else None
        if log is None or ast.is_path(name):
            raise _not_of_database(name)
        if isinstance(statement, ast.Optimize):
            check_can_optimize(log)
        return log

    def _check_schema(self, statement: ast.DropSchema, namespace: Namespace) -> None:
        """Checks that a statement drops a schema of the transaction's database."""
        *database, schema = statement.name
        is_own = [normalize(each) for each in database or [namespace.database]] == [self._database]
        is_elsewhere = is_own and not database and not self.catalog.has_schema(self._database, schema)
        if not is_own or (is_elsewhere and namespace.is_spark_schema(schema)):
            raise _not_of_database(statement.name)

    def _checked_name(self, name: Name, namespace: Namespace) -> RelationName:
        """Returns the full name that a statement changes, in the transaction's database."""
        found = None if ast.is_path(name) else namespace.name_in_warehouse(name)
        if found is None or found.database != self._database:
            raise _not_of_database(name)
        return found

    def _changed_table(self, statement: Statement, name: RelationName) -> BranchLog | None:
        """Returns the table that the statement drops, or None if it changes no table that exists outside."""
        entry = self.catalog.find(name)
        if isinstance(statement, ast.DropTable) and entry is not None and entry.kind is RelationKind.TABLE:
            return branch_of(self.catalog.table(name))
        return None

    def holds(self, log: BranchLog) -> bool:
        """Returns whether the table had the transaction's own identifier before the transaction."""
        base = log.base()
        return self._txn is not None and base is not None and base.holds(self._txn)

    @property
    def txn(self) -> tuple[str, int] | None:
        """The identifier that the transaction records in each table that it changes."""
        return self._txn

    def _ended(self, what: str) -> Branch:
        if self._is_of_run:
            raise errors.InvalidStatementError(
                f"the statements belong to a run, so only the run can be {what}",
                remedy="Leave `commit` and `rollback` out; `silt publish` and `silt drop-run` end a run",
            )
        branch, self._branch, self._catalog = self._branch, None, None
        if branch is None:
            raise errors.InvalidStatementError(
                f"no transaction is open, so nothing can be {what}", remedy="Run `begin` first"
            )
        return branch


def _not_contained(statement: Statement) -> errors.UnsupportedStatementError:
    what, remedy = _first_words(statement), OUTSIDE
    if isinstance(statement, ast.Vacuum):
        remedy = _LATER
    elif isinstance(statement, ast.Rename):
        what, remedy = "a rename of a table", COPY
    return errors.UnsupportedStatementError(f"{what} cannot be part of a transaction", remedy=remedy)


def _not_of_database(name: Name) -> errors.UnsupportedStatementError:
    return errors.UnsupportedStatementError(
        "a transaction can only change relations of its database, named by their names, not this relation",
        table=".".join(name),
        remedy=OUTSIDE,
    )


def _changed_name(statement: Statement, namespace: Namespace) -> Name | None:
    """Returns the name of the relation or function that a statement creates, replaces or drops, if any; a table that
    exists is changed by a commit.
    """
    if isinstance(statement, _ON_NAMES) or _is_about_view(statement):
        return statement.name
    if isinstance(statement, ast.DropTable):
        return statement.table
    if isinstance(statement, (ast.MakesTable, ast.WriteRows)):
        return None if _is_table(statement.table, namespace) else statement.table
    return None


def _is_about_view(statement: Statement) -> TypeGuard[ast.OnObject]:
    is_view = isinstance(statement, ast.OnObject) and statement.kind is ast.ObjectKind.VIEW
    return is_view and not isinstance(statement, ast.AlterOther)


def _is_table(name: Name, namespace: Namespace) -> bool:
    """Returns whether a table has that name, in the warehouse or elsewhere."""
    try:
        return not isinstance(namespace.meaning(name), WarehouseView)
    except errors.RelationNotFoundError:
        return False


def _is_temporary(statement: Statement, namespace: Namespace) -> bool:
    """Returns whether a statement is about a temporary view or function."""
    if isinstance(statement, ast.CreateView):
        return statement.scope is not ast.ViewScope.PERSISTENT
    if isinstance(statement, (ast.CreateFunction, ast.DropFunction)):
        return statement.temporary
    if isinstance(statement, (ast.DropView, ast.DropTable)):
        return namespace.is_temporary(statement.name if isinstance(statement, ast.DropView) else statement.table)
    return isinstance(statement, ast.CreateViewUsing)


def _first_words(statement: Statement) -> str:
    """Returns the first words of a statement, which name its kind."""
    return " ".join(statement.text.split()[:2]).upper()

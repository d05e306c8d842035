"""Macro API of the operations `silt_rollback`, `silt_history` and `silt_register`; registers each written table."""

from __future__ import annotations

import io
import itertools
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.catalog.names.relation_names import name_parts
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.runs.node_context import table_of

if TYPE_CHECKING:
    from dbt.adapters.silt.cli import history as history_command
    from dbt.adapters.silt.cli import rollback as rollback_command
    from dbt.adapters.silt.cli import warehouses
    from dbt.adapters.silt.cli.output import answers, rendering
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.records import rollback as rollback_of_runs
    from dbt.adapters.silt.records import run_history
    from dbt.adapters.silt.session import registration
else:
    history_command = lazy_module("dbt.adapters.silt.cli.history")
    rendering = lazy_module("dbt.adapters.silt.cli.output.rendering")
    rollback_command = lazy_module("dbt.adapters.silt.cli.rollback")
    warehouses = lazy_module("dbt.adapters.silt.cli.warehouses")
    rollback_of_runs = lazy_module("dbt.adapters.silt.records.rollback")
    run_history = lazy_module("dbt.adapters.silt.records.run_history")
    registration = lazy_module("dbt.adapters.silt.session.registration")

logger = AdapterLogger("Silt")


class RollbackMethods(metaclass=AdapterMeta):
    """The part of the adapter that undoes a run and shows the versions of a table. Needs no Spark."""

    config: Any
    connections: SiltConnectionManager

    @available.parse(lambda *_, **__: "")
    def roll_back(
        self,
        run_id: str,
        *,
        dry_run: bool = False,
        discard_later_commits: bool = False,
        drop_created: bool = False,
        exclude: list[str] | str | None = None,
    ) -> str:
        """Undoes a run, or with `dry_run` only lists the changes; returns the output of `silt rollback`.

        It is not a unit of work: a second rollback of the same run, after a rerun, must not be skipped.
        """
        warehouse, invocation = self._warehouse(), self.connections.invocation
        with self.connections.exception_handler(f"roll back run {run_id}"):
            request = rollback_of_runs.RollbackRequest(
                str(run_id),
                dry_run,
                discard_later_commits,
                drop_created,
                frozenset(map(warehouse.name, [exclude] if isinstance(exclude, str) else exclude or ())),
                invocation.id,
                str(getattr(self.config, "target_name", "")),
            )
            records = ProjectRecords.of(invocation.target_path)
            request = rollback_of_runs.with_full_id(warehouse.catalog, request, records)
            done = rollback_of_runs.roll_back_run(warehouse.catalog, request, records)
            rollback_of_runs.note_rolled_back(invocation.target_path, request, done)
            return _text(rollback_command.answer(request, done))

    @available.parse(lambda *_, **__: "")
    def table_history(self, table: str, limit: int | None = None) -> str:
        """Returns the versions of a table, newest first, as the output of `silt history`.

        Args:
            table: its name, as on the command line, or a relation.
            limit: the maximum number of versions.
        """
        warehouse = self._warehouse()
        with self.connections.exception_handler(f"show the history of {table}"):
            catalog, parts = warehouse.catalog, name_parts(str(table))
            is_path = len(parts) == 2 and parts[0].lower() == "delta"
            log = catalog.table_at(parts[1]) if is_path else catalog.table(warehouse.name(str(table)))
            commits = itertools.islice(run_history.newest_commits(log), None if limit is None else max(int(limit), 0))
            return _text(history_command.answer(log, list(commits)))

    def _warehouse(self) -> warehouses.OpenWarehouse:
        """Returns the warehouse as the command `silt` uses it."""
        profile = self.config.credentials
        environment = self.connections.sessions.environment
        return warehouses.OpenWarehouse(environment.catalog, environment.locations, profile.database, profile.schema)


class RegistrationMethods(metaclass=AdapterMeta):
    """The part of the adapter that registers tables in a metastore."""

    config: Any
    connections: SiltConnectionManager

    @property
    @abstractmethod
    def _own_database(self) -> str:
        """The database of a node without a database."""

    def register_own_table(self) -> None:
        """Registers the table of this thread's node, or removes its entry if a view has replaced it.

        The table is already committed, so a failure is only a warning. A command that is published registers its
        tables after the publication.
        """
        node = self.connections.node.context
        if self.config.credentials.catalog is None or not self.connections.invocation.writes:
            return
        entries = self.connections.sessions.registration
        if entries is None or not node.is_writing_node or self.connections.publication.is_on:
            return
        name = table_of(node.node, self._own_database)
        for warning in entries.settle_committed([name]):
            logger.warning(warning)

    @available.parse(lambda *_, **__: [])
    def register_tables(self) -> list[str]:
        """Registers all tables of the profile's database, and returns a sentence about the result for each name.

        Raises:
            DbtRuntimeError: if the profile names no metastore, or it cannot be reached.
        """
        entries = self.connections.sessions.registration
        if entries is None:
            raise DbtRuntimeError("The profile names no metastore: set `catalog: hive`")
        with self.connections.exception_handler("register the tables"):
            return [str(each) for each in entries.settle_all(self._own_database)]


def _text(found: answers.Answer) -> str:
    printed = io.StringIO()
    rendering.show(found, False, printed)
    return printed.getvalue().rstrip()

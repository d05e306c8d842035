"""What the operation `silt_rollback` asks of the adapter."""

from __future__ import annotations

import io
from typing import Any

from dbt.adapters.base.meta import AdapterMeta, available

from dbt.adapters.silt.cli import rendering
from dbt.adapters.silt.cli.places import Place
from dbt.adapters.silt.cli.rollback import answer
from dbt.adapters.silt.connections import SiltConnectionManager
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.rollback import RollbackRequest, roll_back_run


class RollbackMethods(metaclass=AdapterMeta):
    """The part of the adapter that undoes a run. Needs no Spark."""

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
        """Undo a run, or say what that would do; the text that `silt rollback` prints of it.

        It is no unit of work: a run that is run again after its rollback is rolled back again under whatever id.
        """
        place, invocation = self._place(), self.connections.invocation
        with self.connections.exception_handler(f"roll back run {run_id}"):
            request = RollbackRequest(
                str(run_id),
                dry_run,
                discard_later_commits,
                drop_created,
                frozenset(map(place.name, [exclude] if isinstance(exclude, str) else exclude or ())),
                invocation.id,
                str(getattr(self.config, "target_name", "")),
            )
            records = ProjectRecords.of(invocation.target_path)
            return _text(answer(request, roll_back_run(place.catalog, request, records)))

    def _place(self) -> Place:
        """The warehouse, as the command `silt` knows one."""
        profile = self.config.credentials
        environment = self.connections.environment
        return Place(environment.catalog, environment.locations, profile.database, profile.schema)


def _text(found: rendering.Answer) -> str:
    printed = io.StringIO()
    rendering.show(found, False, printed)
    return printed.getvalue().rstrip()

"""Registers tables in the profile's metastore: each table after its node, and all tables by `silt_register`."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.kernel.errors import RegistrationError
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.runs.node_context import table_of

if TYPE_CHECKING:
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.registration import registration
else:
    registration = lazy_module("dbt.adapters.silt.registration.registration")

logger = AdapterLogger("Silt")


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

        The table is already committed, so a failure is only a warning.
        """
        node = self.connections.node.context
        if self.config.credentials.catalog is None or not self.connections.invocation.writes:
            return
        entries = self.connections.registration
        if entries is None or not node.is_writing_node:
            return
        name = table_of(node.node, self._own_database)
        try:
            done = entries.settle(name)
        except RegistrationError as error:
            others = "" if entries.is_open else "; the same is true of the other tables of this command"
            logger.warning(f"{name} is built, but not registered{others}: {error}")
        else:
            _say(done)

    @available.parse(lambda *_, **__: [])
    def register_tables(self) -> list[str]:
        """Registers all tables of the profile's database, and returns a sentence about the result for each name.

        Raises:
            DbtRuntimeError: if the profile names no metastore, or it cannot be reached.
        """
        entries = self.connections.registration
        if entries is None:
            raise DbtRuntimeError("The profile names no metastore: set `catalog: hive`")
        with self.connections.exception_handler("register the tables"):
            return [str(each) for each in entries.settle_all(self._own_database)]


def _say(done: registration.SettledName) -> None:
    if done.settled is registration.Settled.TAKEN:
        logger.warning(
            f"{done}. Drop that entry in the metastore, or give the model another name, "
            "then run `dbt run-operation silt_register`"
        )
    else:
        logger.debug(f"In the metastore: {done}")

"""Opens the warehouse of a profile once in this process, and opens connections to it."""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import SparkSession

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.answers.connection import AnswersWithoutSpark, answers_of
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.locations import check_locations
from dbt.adapters.silt.engine.catalog.open_databases import open_databases, open_location
from dbt.adapters.silt.engine.commands.spark import session_settings
from dbt.adapters.silt.engine.commands.spark.errors import SPARKS
from dbt.adapters.silt.engine.kernel.errors import SiltError, SparkEndedError
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.warehouse import Warehouse, WarehouseSettings
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.locations import locations as warehouse_locations
from dbt.adapters.silt.records.locations import storages_of
from dbt.adapters.silt.records.units import is_forgotten_on_replace
from dbt.adapters.silt.session import class_archive, early_spark, kept
from dbt.adapters.silt.session.handle import OpenSession, SiltHandle
from dbt.adapters.silt.session.jars import ACCELERATED
from dbt.adapters.silt.session.registration import HiveMetastore, Registration
from dbt.adapters.silt.session.spark import SessionPool, forget_ended, has_only_own_spark, why_not_kept

if TYPE_CHECKING:
    from dbt.adapters.silt.runs.statement_runner import StatementRunner
    from dbt.adapters.silt.session import stages
    from dbt.adapters.silt.status_lines.display import Display
else:
    stages = lazy_module("dbt.adapters.silt.session.stages")

_logger = logging.getLogger(__name__)
logger = AdapterLogger("Silt")


def _note_nothing() -> None:
    """Notes no session."""


def _never() -> bool:
    return False


_CHECK_SECONDS = 0.1
_ENDING_SECONDS = 5.0
_Opened = TypeVar("_Opened")


class Environment:
    """A warehouse in this process. Its catalog needs no Spark, which starts with the first connection.

    Args:
        credentials: the profile.
        locations: the absolute folders of the databases by name, including the profile's own database.
    """

    def __init__(self, credentials: SiltCredentials, locations: Mapping[str, str]) -> None:
        self._credentials = credentials
        self._locations = locations
        self.storages = storages_of(locations, credentials.storage, credentials.databases)
        self._lock = threading.Lock()
        self._pool: SessionPool | None = None
        self._warehouse: Warehouse | None = None
        self._failure: SiltError | None = None
        self._databases = open_databases(locations, self.storages, credentials.external_paths)

    @property
    def locations(self) -> Mapping[str, str]:
        """The absolute folders of the databases by name."""
        return self._locations

    @property
    def catalog(self) -> Catalog:
        """The relations of the warehouse, or of the profile's branch, with the caches that statements use.

        Raises:
            BranchNotFoundError: if the profile's branch does not exist.
        """
        return self._databases.catalog if self.branch is None else self._on_branch

    @property
    def published(self) -> Catalog:
        """The relations of the warehouse, also if the profile has a branch."""
        return self._databases.catalog

    def forget_branch(self) -> None:
        """Finds the profile's branch again when it is next used: it may continue on another branch since."""
        for name in ("branch", "_on_branch"):
            self.__dict__.pop(name, None)

    @functools.cached_property
    def branch(self) -> Branch | None:
        """The named branch on which all sessions of the profile work, if any. Raises as `catalog`."""
        given, catalog = self._credentials, self._databases.catalog
        return catalog.named_branches(given.database).named(given.branch) if given.branch else None

    @functools.cached_property
    def _on_branch(self) -> Catalog:
        assert self.branch is not None
        return self._databases.catalog.on_branch(self._credentials.database, self.branch)

    @property
    def accelerated(self) -> dict[str, str]:
        """The setting that switches an accelerator on in the sessions of a Spark that this machine starts; else empty.

        Raises:
            InvalidSettingError: if Spark could not be started with these settings.
            SparkUnavailableError: if the jar of the accelerator is damaged or missing.
        """
        if self._credentials.accelerator is None:
            return {}
        conf = early_spark.settings_of(self._credentials, self._locations, self.storages).spark_conf
        return {name: str(value) for name, value in conf.items() if name == ACCELERATED}

    def open_store(self, location: str) -> Store:
        """Opens the store of any location, with the settings of the databases next to it.

        Raises:
            InvalidSettingError: if its storage is not supported or cannot be reached with these settings.
        """
        return open_location(location, self.storages)

    def open(
        self,
        runner: StatementRunner,
        shown_on: Display | None = None,
        file_locations: Container[str] = (),
        only_reads: bool = False,
        on_session: Callable[[], None] = _note_nothing,
        branch: Branch | None = None,
        check_wanted: Callable[[], None] = _note_nothing,
    ) -> SiltHandle:
        """Returns a handle on a session of its own, and starts Spark if it is not running.

        Args:
            shown_on: the display of the progress of its statements; None shows nothing.
            file_locations: the files and folders that views may read.
            only_reads: whether Spark may start later, with the first statement that needs it.
            on_session: called when the session opens.
            branch: the branch of the profile's database on which its statements work.
            check_wanted: called while Spark starts; raises an error to stop waiting.

        Raises:
            SiltError: if Spark cannot be started, or the warehouse cannot be used.
        """

        def opening() -> OpenSession:
            on_session()
            if shown_on is None or self._credentials.remote:
                return opened()
            with shown_on.starting(bool(self._credentials.keep_alive)):
                return opened()

        def opened() -> OpenSession:
            return self._of_living_spark(
                lambda: self._session(self._started(check_wanted), shown_on, file_locations, branch)
            )

        answers = self.answers() if only_reads else None
        handle = SiltHandle(opening, runner, answers)
        if answers is None:
            handle.opened()
        return handle

    def answers(self) -> AnswersWithoutSpark | None:
        """Returns the answers to queries without Spark, if the profile's Spark would certainly give the same.

        Raises:
            InvalidSettingError: if Spark could not be started with these settings, or the locations are invalid.
        """
        given = self._credentials
        is_own = bool(given.master) and not given.remote and (bool(given.keep_alive) or has_only_own_spark())
        if not is_own:
            return None
        check_locations(self._locations)
        session_settings.check({name: str(value) for name, value in given.spark_conf.items()})
        return answers_of(given.spark_conf, self.catalog, given.database, given.schema)

    @property
    def can_answer(self) -> bool:
        """Whether any query can be answered without Spark."""
        try:
            return self.answers() is not None
        except SiltError:  # the first connection raises it
            return False

    def _session(
        self, pool: SessionPool, shown_on: Display | None, file_locations: Container[str], branch: Branch | None
    ) -> OpenSession:
        session = pool.acquire()
        assert self._warehouse is not None
        line = None if shown_on is None else shown_on.line(stages.stages_of(session))
        progress = None if line is None else line.report
        warehouse = self._warehouse.for_session(session, one_cut=True, progress=progress, branch=branch or self.branch)
        warehouse.settings = replace(warehouse.settings, file_locations=file_locations)
        is_lost = kept.has_ended if self._credentials.keep_alive else _never
        return OpenSession(pool, session, warehouse, line, is_lost)

    def warehouse(self, file_locations: Container[str] = (), branch: Branch | None = None) -> Warehouse:
        """Returns the warehouse for a new session, whose statements are independent of each other.

        If the Spark of this process has ended, another is started.

        Args:
            branch: the branch of the profile's database that they can only read.
            file_locations: as for `open`.
        """

        def opened() -> Warehouse:
            session = self._started().acquire()
            assert self._warehouse is not None
            on = branch or self.branch
            return self._warehouse.for_session(session, branch=on, is_read_only=branch is not None)

        try:
            warehouse = self._of_living_spark(opened)
        except (SparkEndedError, *SPARKS):
            if not forget_ended(_ENDING_SECONDS):
                raise
            warehouse = opened()
        warehouse.settings = replace(warehouse.settings, file_locations=file_locations)
        return warehouse

    def _of_living_spark(self, opening: Callable[[], _Opened]) -> _Opened:
        """Opens a session; opens a session of another Spark if a kept Spark ends meanwhile: it did nothing yet.

        A Spark that is being killed accepts connections until its process has ended.
        """
        try:
            return opening()
        except SparkEndedError:
            if not self._credentials.keep_alive:
                raise
            return opening()

    def check_living(self, warehouse: Warehouse) -> None:
        """Raises SparkEndedError if the Spark of a session has ended, and another has been started since."""
        if self._pool is not None and self._pool.has_lost(warehouse.spark):
            raise SparkEndedError(
                "the Spark of this session has ended, and the session's views and settings with it",
                remedy="Connect again: a new session has a new Spark",
            )

    def release(self, warehouse: Warehouse) -> None:
        """Releases the session of a warehouse that is not used again."""
        if self._pool is not None:
            self._pool.release(warehouse.spark)

    def warm_up(self, failure: SiltError | None = None) -> None:
        """Starts Spark if it is not running; to be called on its own thread. The next connection raises a failure.

        Args:
            failure: the failure of an earlier start, which is then not repeated.
        """
        with self._lock:
            try:
                if failure is None and self._failure is None:
                    self._start()
            except SiltError as error:
                failure = error
            self._failure = failure or self._failure

    def registration(self) -> Registration | None:
        """Returns the entries of this warehouse in the profile's metastore, if any, for a single command."""
        if self._credentials.catalog is None:
            return None
        return Registration(lambda: HiveMetastore(self._started().acquire()), self.catalog, self._locations)

    def _started(self, check_wanted: Callable[[], None] = _note_nothing) -> SessionPool:
        """Returns the pool of the Spark that runs, or that is started now."""
        if self._pool is None:
            # On a thread of its own, so that Ctrl-C need not wait until Spark has started.
            start = threading.Thread(target=self.warm_up, name="silt-start", daemon=True)
            start.start()
            while start.is_alive():
                check_wanted()
                start.join(_CHECK_SECONDS)
        with self._lock:
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            return self._start()

    def _start(self) -> SessionPool:
        if self._pool is None:
            check_locations(self._locations)
            settings = early_spark.settings_of(self._credentials, self._locations, self.storages)
            if (notice := why_not_kept(settings)) is not None:
                logger.info(notice)
            pool = SessionPool(settings)
            session = pool.acquire()
            self._warehouse = self._open_warehouse(session)
            pool.release(session)
            self._pool = pool
            _logger.debug("the warehouse is open")
            is_own_spark = not self._credentials.remote and not self._credentials.keep_alive
            if is_own_spark and class_archive.make_after_this_process():  # a kept Spark creates its own archive
                logger.info(class_archive.NOTICE)
        return self._pool

    def _open_warehouse(self, session: SparkSession) -> Warehouse:
        given = self._credentials
        return Warehouse.over(
            session,
            self._databases,
            (given.database, given.schema),
            WarehouseSettings(
                isolation_level=IsolationLevel(given.isolation_level) if given.isolation_level else None,
                max_commit_attempts=given.max_commit_attempts,
                statement_attempts=given.statement_attempts,
                is_forgotten_on_replace=is_forgotten_on_replace,
                python_functions=given.python_functions,
                stored_code=given.stored_code,
                external_paths=given.external_paths,
                log_skips=False,  # dbt's log and results report them
            ),
        )


_OF_THE_RUN = ("run_id", "resume", "target_type", "publish", "publish_attempts", "held_inputs")
"""The fields of a profile that affect neither its warehouse nor its session."""
_environments: dict[str, Environment] = {}
_environments_lock = threading.Lock()


def environment_of(credentials: SiltCredentials, project_root: Path) -> Environment:
    """Returns the environment of a profile, shared by all adapters of this process with the same settings."""
    locations = warehouse_locations(credentials.database, credentials.warehouse, credentials.databases, project_root)
    settings = {name: value for name, value in credentials.to_dict().items() if name not in _OF_THE_RUN}
    key = json.dumps([locations, settings], sort_keys=True, default=str)
    with _environments_lock:
        if key not in _environments:
            _environments[key] = Environment(credentials, locations)
        return _environments[key]

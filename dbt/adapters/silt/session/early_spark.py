"""Starts the Spark of a profile before the engine is imported: Spark starts while Python imports the engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.catalog.names.locations import check_locations
from dbt.adapters.silt.engine.commands.spark import hadoop_storage
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.locations import locations as warehouse_locations
from dbt.adapters.silt.records.locations import storages_of
from dbt.adapters.silt.session.jars import SparkStorage
from dbt.adapters.silt.session.spark import SessionSettings, start_spark, why_not_kept

logger = AdapterLogger("Silt")

if TYPE_CHECKING:
    from dbt.adapters.silt.session import accelerator
else:
    accelerator = lazy_module("dbt.adapters.silt.session.accelerator")


def start(given: SiltCredentials, project_root: Path, meanwhile: Callable[[], object]) -> SiltError | None:
    """Starts the Spark of a profile, embedded or kept. A server is left to the first connection.

    Args:
        given: the profile.
        project_root: the base of relative folders.
        meanwhile: called on another thread while Spark starts.

    Returns:
        The failure of the start, or None.
    """
    if given.remote or not given.master:
        return None
    try:
        locations = warehouse_locations(given.database, given.warehouse, given.databases, project_root)
        check_locations(locations)
        settings = settings_of(given, locations, storages_of(locations, given.storage, given.databases))
        threading.Thread(target=meanwhile, name="silt-meanwhile", daemon=True).start()
        # Before the start: afterwards, this Spark is itself a kept Spark.
        if settings.keep_alive is not None and (notice := why_not_kept(settings)) is not None:
            logger.info(notice)
        start_spark(settings)
    except SiltError as error:
        return error
    return None


def settings_of(given: SiltCredentials, locations: Mapping[str, str], storages: Storages) -> SessionSettings:
    """Returns the Spark of a profile and its settings.

    Args:
        given: the profile.
        locations: the absolute folders of the databases by name.
        storages: the access settings of the databases.

    Raises:
        InvalidSettingError: if the settings of an object store are not supported by Spark.
    """
    conf = {name: str(value) for name, value in given.spark_conf.items()}
    services = tuple(hadoop_storage.services(locations, storages))
    if given.accelerator is not None:
        asked = accelerator.Accelerator(given.accelerator, given.accelerator_jars, given.accelerator_required)
        conf |= accelerator.settings(asked, conf, given.master, services)
    if given.remote or not given.master:  # a profile without `remote` has a `master`
        return SessionSettings(remote=given.remote, spark_conf=conf)
    own = {name.removeprefix("spark.hadoop.") for name in given.spark_conf}
    found = hadoop_storage.all_settings(locations, storages)
    hadoop = {name: value for name, value in found.items() if name not in own}
    storage = SparkStorage(hadoop, services, given.storage_jars)
    return SessionSettings(master=given.master, spark_conf=conf, keep_alive=given.keep_alive_time, storage=storage)

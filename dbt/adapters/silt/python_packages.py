"""What a python model's configuration asks of the place that it runs in, which here is dbt's own process."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id
from packaging.requirements import InvalidRequirement, Requirement

logger = AdapterLogger("Silt")

_OF_OTHER_PLACES = frozenset(
    """
    access_control_list additional_libs cluster_id create_notebook environment_dependencies environment_key http_path
    index_url job_cluster_config notebook_access_control_list notebook_scoped_libraries python_job_config python_version
    submission_method timeout use_anonymous_sproc user_folder_for_python
    """.split()
)
"""Where and how Databricks and Snowflake run a python model."""


def check_surroundings(config: Mapping[str, Any]) -> None:
    """See that the `packages` of a python model are here, and say what of its configuration means nothing here.

    Raises:
        DbtRuntimeError: a package is not installed.
    """
    others = sorted(name for name in _OF_OTHER_PLACES if config.get(name) is not None)
    if others:
        _warn_once(
            get_invocation_id(),
            f"Python models run in dbt's own process, on the Spark of the profile: {', '.join(others)} "
            f"{'has' if len(others) == 1 else 'have'} no effect",
        )
    packages = config.get("packages") or []
    check_packages([packages] if isinstance(packages, str) else packages)


def check_packages(packages: Iterable[str]) -> None:
    """See that each package, as pip writes its name and versions, is installed; another version of it is a warning.

    Raises:
        DbtRuntimeError: some are not.
    """
    missing = [package for package in packages if not _is_here(package)]
    if missing:
        wanted = " ".join(f"'{package}'" for package in missing)
        raise DbtRuntimeError(
            f"The model needs packages that are not installed where dbt runs ({', '.join(missing)}): "
            f"run `pip install {wanted}` there"
        )


def _is_here(package: str) -> bool:
    try:
        wanted = Requirement(package)
    except InvalidRequirement:
        logger.warning(f"`packages` of the model: {package} is not checked, since pip would not know it by that name")
        return True
    if wanted.marker is not None and not wanted.marker.evaluate():
        return True
    try:
        installed = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        return importlib.util.find_spec(wanted.name.replace("-", "_").split(".")[0]) is not None
    if not wanted.specifier.contains(installed, prereleases=True):
        logger.warning(f"The model asks for {package}; {wanted.name} {installed} is installed, and is used")
    return True


@functools.lru_cache(maxsize=256)
def _warn_once(_invocation_id: str, text: str) -> None:
    logger.warning(text)

"""Checks the `packages` of a python model, which imports packages that are installed in dbt's own process."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from importlib import metadata

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from packaging.requirements import InvalidRequirement, Requirement

logger = AdapterLogger("Silt")


def check_packages(packages: Iterable[str]) -> None:
    """Checks that each package, in pip's syntax, is installed; warns about a different version.

    Raises:
        DbtRuntimeError: if packages are missing.
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
        logger.warning(f"`packages` of the model: {package} is not checked, because it is not a package name of pip")
        return True
    if wanted.marker is not None and not wanted.marker.evaluate():
        return True
    try:
        installed = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        return importlib.util.find_spec(wanted.name.replace("-", "_").split(".")[0]) is not None
    if not wanted.specifier.contains(installed, prereleases=True):
        logger.warning(f"The model requires {package}, but {wanted.name} {installed} is installed and is used")
    return True

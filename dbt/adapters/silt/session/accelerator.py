"""Gives Spark an accelerator: Apache DataFusion Comet, which runs scans, joins, aggregates and shuffles natively.

Comet is a jar for each minor version of Spark. It is looked for in the folder that the profile names, or in Ivy's
folder, and is downloaded if it is missing, as the jars for object stores are. Its digest is compared before Spark
loads it. Everything else is a setting of Spark, so that a kept Spark, a running Spark and the facts about a build
treat an accelerator like any other setting.
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, SiltError, SparkUnavailableError
from dbt.adapters.silt.engine.kernel.storage.urls import Service
from dbt.adapters.silt.session import jars
from dbt.adapters.silt.session.java_launch import CLASS_PATH, default_memory, spark_home

logger = AdapterLogger("Silt")

_PLUGINS: Final = "spark.plugins"
_PLUGIN: Final = "org.apache.spark.CometPlugin"
_SHUFFLE: Final = "spark.shuffle.manager"
_SHUFFLES: Final = "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager"
_HEAP: Final = "spark.driver.memory"
_OFF_HEAP: Final = "spark.memory.offHeap.size"
_GROUP: Final = "org.apache.datafusion"
_EXCLUDED: Final = "org.scala-lang.modules:*"
"""A dependency in Comet's list, which Spark has."""

_FALLS_BACK: Final = {
    "spark.comet.exec.strictFloatingPoint": "true",  # otherwise -0.0 and 0.0 would be sorted as different values
}
"""The settings that leave the operations to Spark that Comet computes differently."""


@dataclass(frozen=True)
class Accelerator:
    """The accelerator that a profile asks for.

    Attributes:
        name: `comet`, the only accelerator there is.
        jars: the folder of its jar, if the profile names it.
        is_required: whether Spark does not start without it.
    """

    name: str
    jars: str | None = None
    is_required: bool = True


@dataclass(frozen=True)
class _Release:
    """A release of Comet for a minor version of Spark."""

    artifact: str
    version: str
    sha256: str

    @property
    def coordinate(self) -> str:
        return f"{_GROUP}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


_RELEASES: Final = {
    "4.1": _Release(
        "comet-spark-spark4.1_2.13", "1.2.0", "5055c43dca9e8cce83c33b1ff25646d1436c94698ca48beb3475bf60843b8d37"
    ),
}
"""The release for each minor version of Spark."""

_PROCESSORS: Final = {"x86_64": ("avx2", "bmi2", "fma"), "aarch64": ("atomics",)}
"""The processors for which the jar has a library, and the instructions that the library uses."""

_GLIBC: Final = (2, 30)
_LEAST_MIB: Final = 2048
_MIB: Final = 1024**2


def settings(
    accelerator: Accelerator, given: Mapping[str, str], master: str | None, services: tuple[Service, ...]
) -> dict[str, str]:
    """Returns the settings that start Spark with the accelerator, or no settings if Spark starts alone.

    Args:
        given: the user's settings of Spark.
        master: of the Spark that is about to be started; a server has no master.
        services: the object stores of the databases.

    Raises:
        InvalidSettingError: if this Spark, this machine or these settings do not support it.
        SparkUnavailableError: if its jar is damaged, or cannot be downloaded.
    """
    try:
        return dict(_settings(accelerator, tuple(sorted(given.items())), master, services))
    except SiltError as error:
        if accelerator.is_required:
            raise
        _warn(error.problem)
        return {}


@cache
def _warn(reason: str) -> None:
    logger.warning(f"Spark runs without the accelerator: {reason}")


@cache
def _settings(
    accelerator: Accelerator, given: tuple[tuple[str, str], ...], master: str | None, services: tuple[Service, ...]
) -> Mapping[str, str]:
    user = dict(given)
    if (problem := why_not_here(master, services) or why_not_on(_machine())) is not None:
        raise InvalidSettingError(problem, remedy=_WITHOUT)
    if user.get(_SHUFFLE, _SHUFFLES) != _SHUFFLES:
        raise InvalidSettingError(f"`spark_conf` sets {_SHUFFLE}, which the accelerator sets itself", remedy=_WITHOUT)
    release = release_for(jars.version_of("spark-core_2.13", spark_home()))
    memory = divided(user.get(_HEAP, default_memory()), user.get(_OFF_HEAP))
    jar = jar_of(release, accelerator, user)
    return {
        **memory,
        # Not `spark.jars`: Comet's shuffle uses classes of Spark that only classes of the same loader may use.
        CLASS_PATH: ":".join(filter(None, (user.get(CLASS_PATH), str(jar)))),
        _PLUGINS: jars.joined(user.get(_PLUGINS), [_PLUGIN]),
        _SHUFFLE: _SHUFFLES,
        "spark.comet.nativeLoadRequired": "true",
        **{name: user.get(name, value) for name, value in {jars.ACCELERATED: "true", **_FALLS_BACK}.items()},
    }


_WITHOUT: Final = (
    "Remove `accelerator` from the profile, or set `accelerator_required: false`; then Spark runs without it"
)


def why_not_here(master: str | None, services: tuple[Service, ...]) -> str | None:
    """Returns why a Spark cannot be accelerated because of its place, if so."""
    if master is None:
        return "`accelerator` is for a Spark that dbt starts; a Spark Connect server has the plugins that it was given"
    if not master.startswith("local"):
        return f"`accelerator` is for a Spark on this machine, `local[*]`, not on `{master}`"
    return "`accelerator` reads files in folders only, and a database is in an object store" if services else None


@dataclass(frozen=True)
class Machine:
    """The facts that decide whether a native library runs: names as Python's `platform` gives them.

    Attributes:
        features: the processor's instructions; empty if they are unknown.
    """

    system: str
    processor: str
    libc: tuple[str, str]
    features: frozenset[str] = frozenset()


def _machine() -> Machine:
    try:
        said = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        said = ""
    features = re.search(r"^(?:flags|Features)\s*:(.*)$", said, re.MULTILINE)
    names = frozenset(features[1].split()) if features else frozenset[str]()
    return Machine(platform.system(), platform.machine(), platform.libc_ver(sys.executable), names)


def why_not_on(machine: Machine) -> str | None:
    """Returns why the jar's libraries do not run on a machine, if so."""
    named = "the jar of Comet has libraries for Linux on x86-64 and aarch64"
    needed = _PROCESSORS.get(machine.processor)
    if machine.system != "Linux" or needed is None:
        return f"{named}, and this is {machine.system} on {machine.processor}"
    if machine.libc[0] != "glibc" or _numbers(machine.libc[1]) < _GLIBC:
        libc = " ".join(filter(None, machine.libc)) or "another C library"
        return f"{named} with glibc {'.'.join(map(str, _GLIBC))} or later, and this system has {libc}"
    lacking = [each for each in needed if machine.features and each not in machine.features]
    return f"{named} with {', '.join(needed)}, and this processor lacks {', '.join(lacking)}" if lacking else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def release_for(version: str) -> _Release:
    """Returns the release of Comet for a version of Spark.

    Raises:
        InvalidSettingError: if no such release exists.
    """
    found = _RELEASES.get(".".join(version.split(".")[:2]))
    if found is None:
        exist = " and ".join(_RELEASES)
        raise InvalidSettingError(
            f"Comet has no jar for Spark {version or '(unknown)'}; its jars are for Spark {exist}",
            remedy=f"Run `pip install 'pyspark[connect]=={next(iter(_RELEASES))}.*'`. {_WITHOUT}",
        )
    return found


def divided(total: str, off_heap: str | None) -> dict[str, str]:
    """Returns the settings that give half of Spark's memory to Comet, so that both use no more than Spark alone.

    Args:
        total: the memory of Spark, in its notation.
        off_heap: the memory outside of Java that the user asks for; then `total` is Java's memory alone.

    Raises:
        InvalidSettingError: if the memory is too small to be divided.
    """
    on = {"spark.memory.offHeap.enabled": "true"}
    if off_heap is not None:
        return {**on, _OFF_HEAP: off_heap, _HEAP: total}
    amount = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", total.strip().lower())
    if amount is None:
        return {_HEAP: total}  # Spark refuses it
    mib = (int(amount[1]) << 10 * "kmgt".index(amount[2] or "m")) >> 10
    if mib < _LEAST_MIB:
        raise InvalidSettingError(
            f"Spark has {total} of memory, which is too little for an accelerator: half of it is for Comet, and each "
            f"half must be at least {_LEAST_MIB // 2} MiB",
            remedy=f"Set `{_HEAP}` in `spark_conf` to at least {_LEAST_MIB}m, if the machine has it. {_WITHOUT}",
        )
    return {**on, _HEAP: f"{mib // 2}m", _OFF_HEAP: f"{mib // 2}m"}


def jar_of(release: _Release, accelerator: Accelerator, user: Mapping[str, str]) -> Path:
    """Returns the path of the jar, which is downloaded if it is missing and the profile names no folder.

    Raises:
        InvalidSettingError: if the folder that the profile names does not contain it.
        SparkUnavailableError: if it cannot be downloaded, or is not the jar of that release.
    """
    if accelerator.jars is None:
        offline = f"set `accelerator_jars` in the profile to a folder with {release.file_name}. {_WITHOUT}"
        return _checked(
            release, jars.downloaded(release.coordinate, _EXCLUDED, user, f"Start it once online, or {offline}")
        )
    jar = Path(accelerator.jars).expanduser() / release.file_name
    if not jar.is_file():
        raise InvalidSettingError(
            f"the folder {jar.parent}, which `accelerator_jars` names, does not contain {jar.name}",
            remedy=f"Copy that jar into it; its name in repositories is {release.coordinate}. {_WITHOUT}",
        )
    return _checked(release, jar)


def _checked(release: _Release, jar: Path) -> Path:
    """Returns the jar if it is the jar of that release."""
    digest = hashlib.sha256()
    with jar.open("rb") as file:
        while chunk := file.read(_MIB):
            digest.update(chunk)
    if digest.hexdigest() != release.sha256:
        cached = "" if jar.name == release.file_name else f", and the folder {jar.parents[1] / 'cache' / _GROUP}"
        raise SparkUnavailableError(
            f"the jar {jar} is damaged or another file: its SHA-256 is {digest.hexdigest()}, and the SHA-256 of Comet "
            f"{release.version} is {release.sha256}",
            remedy=f"Delete it{cached}; then copy or download it again. {_WITHOUT}",
            details={"jar": str(jar)},
        )
    return jar


def check_running(conf: Any, asked: Mapping[str, str]) -> None:
    """Checks that a Spark that runs already has the accelerator if the settings of a session ask for it.

    Args:
        conf: the session's `conf`.

    Raises:
        InvalidSettingError: if it does not: only a new Spark can have it.
    """
    if _PLUGIN in asked.get(_PLUGINS, "") and _PLUGIN not in (conf.get(_PLUGINS, "") or ""):
        raise InvalidSettingError(
            "the profile asks for an accelerator, and this process's Spark was started without it",
            remedy="Run it in a process of its own, or remove `accelerator` from the profile",
        )


def state(session: Any, folder: Path) -> str:
    """Says whether an accelerator runs the statements of a session, by a query on a file.

    Args:
        folder: an empty folder that this process and Spark can write to.
    """
    version = session.conf.get("spark.comet.version", None)
    if version is None:
        return "none: Spark runs alone"
    path = str(folder / "probe")
    session.range(1).write.parquet(path)
    frame = session.read.parquet(path).groupBy("id").count()
    frame.collect()
    [plan] = session.sql(f"explain select id, count(*) from parquet.`{path}` group by id").collect()[0]
    runs = "CometNativeScan" in plan and "CometHashAggregate" in plan
    return f"comet {version} is {'active' if runs else 'loaded, but not active in this session'}"

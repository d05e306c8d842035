"""Gives Spark the jars and the settings by which it reaches object stores.

The jars are Hadoop's connectors, which the Spark of pip lacks.

Of the AWS SDK only the modules that S3A uses are taken, without libraries that Spark has: 13 MB instead of the 686 MB
of Hadoop's own list of dependencies. Spark's `spark.jars.packages` downloads them; if all of them are in Ivy's folder,
or in a folder that the profile names, Spark gets these files, and no network is used.

The settings of a Spark of this process are set in Hadoop's own configuration after the start, so that they appear
neither in a command line, which all users of a machine can read, nor on a page of Spark's UI. Settings that appear
there all the same are redacted by name.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark import SparkContext

from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.engine.commands.spark import hadoop_storage
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, SparkUnavailableError
from dbt.adapters.silt.engine.kernel.storage.urls import Service
from dbt.adapters.silt.session import java_launch

_REDACTION = "spark.redaction.regex"

ACCELERATED: Final = "spark.comet.enabled"
"""The setting that switches an accelerator on in a session (`accelerator`)."""


@dataclass(frozen=True)
class SparkStorage:
    """The settings and jars by which Spark reaches the object stores of a profile.

    Attributes:
        hadoop: settings of Hadoop, including secrets.
        services: the services of the databases.
        jars: the folder of the jars, if the profile names it.
    """

    hadoop: Mapping[str, str] = field(default_factory=dict, repr=False)
    services: tuple[Service, ...] = ()
    jars: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Returns the settings as a JSON object."""
        return {"hadoop": dict(self.hadoop), "services": [each.value for each in self.services], "jars": self.jars}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> SparkStorage:
        """Reads the result of `to_dict`."""
        return cls(given["hadoop"], tuple(Service(each) for each in given["services"]), given["jars"])


_CONNECTORS: Final = {
    Service.S3: ("hadoop-aws",),
    Service.AZURE: ("hadoop-azure",),
    Service.GOOGLE: ("hadoop-gcp", "gcs-connector"),
}
CLASSES: Final = {
    Service.S3: ("org.apache.hadoop.fs.s3a.S3AFileSystem",),
    Service.AZURE: ("org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",),
    Service.GOOGLE: (
        "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem",
        "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    ),
}
"""The classes of the connectors; any class of a service is enough."""

_SDK: Final = "software.amazon.awssdk"
_ACCELERATOR: Final = "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3"
_SDK_ASKED_FOR: Final = ("apache-client", "netty-nio-client", "s3", "s3-transfer-manager", "sts")
_SDK_MODULES: Final = (
    *_SDK_ASKED_FOR,
    *("annotations arns auth aws-core aws-query-protocol aws-xml-protocol checksums checksums-spi crt-core".split()),
    *("endpoints-spi http-auth http-auth-aws http-auth-aws-eventstream http-auth-spi http-client-spi".split()),
    *("identity-spi json-utils metrics-spi profiles protocol-core regions retries retries-spi sdk-core".split()),
    *("third-party-jackson-core utils".split()),
)
_EXCLUDED: Final = (
    f"{_SDK}:bundle",
    *("io.netty:* org.apache.httpcomponents:* commons-codec:* commons-logging:* org.slf4j:*".split()),
    *("com.microsoft.azure:* org.eclipse.jetty:* com.fasterxml.jackson.core:* org.codehaus.jackson:*".split()),
    "org.apache.hadoop.thirdparty:*",
    "org.wildfly.openssl:*",  # TLS by the system's OpenSSL; Java's own TLS is enough
)


@dataclass(frozen=True)
class _Release:
    """The dependencies of a release of Hadoop.

    Attributes:
        sdk: the version of the AWS SDK.
        more: coordinates that only some releases need.
    """

    sdk: str
    more: tuple[str, ...] = ()


_RELEASES: Final = {
    "3.4.1": _Release("2.29.52"),
    "3.4.2": _Release("2.29.52", (f"{_ACCELERATOR}:1.2.1",)),
    "3.4.3": _Release("2.35.4", (f"{_ACCELERATOR}:1.3.1", f"{_SDK}:utils-lite:2.35.4")),
    "3.5.0": _Release("2.35.4", (f"{_ACCELERATOR}:1.3.1", f"{_SDK}:utils-lite:2.35.4")),
}


def settings(storage: SparkStorage, given: Mapping[str, str], spark_home: Path) -> dict[str, str]:
    """Returns the settings of Spark that add the connectors it lacks; empty if it has them.

    Args:
        given: the user's settings of Spark.
        spark_home: the folder of the Spark that is about to be started.

    Raises:
        InvalidSettingError: if the folder that the profile names contains no jars, or this Hadoop has no connector.
    """
    lacking = [each for each in storage.services if not _has(each, given, spark_home)]
    if not lacking:
        return {}
    if storage.jars is not None:
        return {"spark.jars": joined(given.get("spark.jars"), _jars_in(Path(storage.jars).expanduser()))}
    release = hadoop_release(spark_home)
    if Service.GOOGLE in lacking and release.startswith(_WITHOUT_GOOGLE):
        raise InvalidSettingError(
            f"Hadoop {release}, which this Spark uses, has no connector for Google Cloud Storage",
            remedy="Name a folder with the shaded jar gcs-connector as `storage_jars` in the profile, or use Spark 4.3",
        )
    ivy = given.get("spark.jars.ivy") or str(Path(_IVY).expanduser())
    exact = [each for service in lacking for each in all_coordinates(service, release)]
    files = [Path(ivy, "jars", _file_name(each)) for each in exact]
    if exact and all(file.is_file() for file in files):
        return {"spark.jars": joined(given.get("spark.jars"), map(str, files))}
    asked = [each for service in lacking for each in coordinates(service, release)]
    return {
        "spark.jars.packages": joined(given.get("spark.jars.packages"), asked),
        "spark.jars.excludes": joined(given.get("spark.jars.excludes"), _EXCLUDED if exact else ()),
        "spark.jars.ivy": ivy,
    }


def coordinates(service: Service, release: str) -> list[str]:
    """Returns the coordinates that Ivy resolves, as `group:artifact:version`."""
    connector = f"org.apache.hadoop:{_CONNECTORS[service][0]}:{release}"
    known = _RELEASES.get(release)
    if service is not Service.S3 or known is None:
        return [connector]
    return [connector, *(f"{_SDK}:{module}:{known.sdk}" for module in _SDK_ASKED_FOR), *known.more]


def all_coordinates(service: Service, release: str) -> list[str]:
    """Returns all jars that Spark lacks for a service; empty if the release of Hadoop is unknown here."""
    known = _RELEASES.get(release)
    if known is None:
        return []
    if service is Service.GOOGLE:
        return [*coordinates(service, release), "org.hdrhistogram:HdrHistogram:2.1.12"]
    if service is Service.AZURE:
        return coordinates(service, release)
    others = ["org.reactivestreams:reactive-streams:1.0.4", "software.amazon.eventstream:eventstream:1.0.1"]
    modules = [f"{_SDK}:{module}:{known.sdk}" for module in _SDK_MODULES if module not in _SDK_ASKED_FOR]
    return [*coordinates(service, release), *modules, *others]


def hadoop_release(spark_home: Path) -> str:
    """Returns the release of Hadoop in a Spark; empty if the names of its jars do not show it."""
    return version_of("hadoop-client-api", spark_home)


def version_of(artifact: str, spark_home: Path) -> str:
    """Returns the version of a jar in a Spark; empty if the names of its jars do not show it."""
    pattern = re.compile(rf"{re.escape(artifact)}-([0-9.]+)\.jar")
    names = (pattern.fullmatch(file.name) for file in sorted((spark_home / "jars").glob(f"{artifact}-*.jar")))
    return next((name[1] for name in names if name), "")


def not_brought(storage: SparkStorage, spark_home: Path, reason: str) -> SparkUnavailableError:
    """Returns the error for a Spark that could not get the jars, or whose jars are incomplete."""
    release = hadoop_release(spark_home)
    exact = [
        each
        for service in storage.services
        for each in all_coordinates(service, release) or coordinates(service, release)
    ]
    return SparkUnavailableError(
        f"Spark lacks the jars for {', '.join(each.value for each in storage.services)} ({reason}); "
        f"for Hadoop {release or '(unknown)'} it needs: {', '.join(exact)}",
        remedy="Start it where they can be downloaded, or set `storage_jars` in the profile to a folder with them",
        details={"jars": exact},
    )


_WITHOUT_GOOGLE: Final = ("3.3.", "3.4.")


def _has(service: Service, given: Mapping[str, str], spark_home: Path) -> bool:
    """Returns whether a Spark has a connector, as far as is known before it starts; the start checks again."""
    names = _CONNECTORS[service]
    if any(any((spark_home / "jars").glob(f"{name}*.jar")) for name in names):
        return True
    said = " ".join(value for key, value in given.items() if "jars" in key or "ClassPath" in key)
    if any(name in said for name in names) or os.environ.get("SPARK_DIST_CLASSPATH"):
        return True
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf", "spark-defaults.conf")
    return defaults.is_file() and "extraClassPath" in defaults.read_text(encoding="utf-8", errors="replace")


def _jars_in(folder: Path) -> list[str]:
    found = sorted(map(str, folder.glob("*.jar")))
    if not found:
        raise InvalidSettingError(
            f"the folder {folder}, which `storage_jars` names, contains no jars",
            remedy="Correct its path, or copy the jars into it",
        )
    return found


def _file_name(coordinate: str) -> str:
    """Returns the name of a jar in Ivy's folder."""
    group, artifact, version = coordinate.split(":")
    return f"{group}_{artifact}-{version}.jar"


def downloaded(coordinate: str, excluded: str, given: Mapping[str, str], remedy: str) -> Path:
    """Returns the path of a jar in Ivy's folder, into which it is downloaded if it is missing.

    Spark's own resolver downloads it, by the user's settings of repositories, before a Spark starts that loads it.

    Args:
        excluded: dependencies in the jar's list that Spark has.
        given: the user's settings of Spark.

    Raises:
        SparkUnavailableError: if it cannot be downloaded; ends with the remedy.
    """
    ivy = given.get("spark.jars.ivy") or _IVY
    jar = Path(ivy).expanduser() / "jars" / _file_name(coordinate)
    if jar.is_file():
        return jar
    conf = {"spark.jars.ivy": str(jar.parents[1]), **{key: given[key] for key in _OF_IVY if key in given}}
    options = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    asked = ("--packages", coordinate, "--exclude-packages", excluded)
    command = [
        java_launch.find_java().path,
        "-cp",
        str(java_launch.spark_home() / "jars" / "*"),
        _SUBMIT,
        *options,
        *asked,
        *_NO_SPARK,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return jar
    said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    reason = next((line for line in said if "Exception" in line), said[-1] if said else "no reason was given")
    raise SparkUnavailableError(
        f"{coordinate} cannot be downloaded ({reason})", remedy=remedy, details={"log": "\n".join(said)}
    )


_IVY: Final = "~/.ivy2.5.2"
_OF_IVY: Final = ("spark.jars.ivySettings", "spark.jars.repositories")
_SUBMIT: Final = "org.apache.spark.deploy.SparkSubmit"
_NO_SPARK: Final = ("--class", "org.apache.hadoop.util.VersionInfo", "spark-internal")
"""A program that ends at once, without a Spark."""


def joined(given: str | None, more: Iterable[str]) -> str:
    """Returns a setting that is a list, with more elements."""
    return ",".join([*([given] if given else []), *more])


def redaction(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the setting that keeps secrets out of Spark's UI and its event log, combined with the user's own."""
    own = given.get(_REDACTION)
    return {_REDACTION: f"(?:{own})|{hadoop_storage.REDACTED}" if own else hadoop_storage.REDACTED}


def apply(context: SparkContext, storage: SparkStorage) -> None:
    """Sets the entries that differ, and closes connections that were opened with other settings."""
    configuration = spark_seams.hadoop_configuration(context)
    changed = {name: value for name, value in storage.hadoop.items() if configuration.get(name) != value}
    if storage.hadoop:
        hadoop_storage.trust(context.applicationId)
    if not changed:
        return
    was_there = any(configuration.get(name) is not None for name in changed)
    for name, value in changed.items():
        configuration.set(name, value)
    if was_there:
        _forget_connections(context)


def lacking(context: SparkContext, storage: SparkStorage) -> list[Service]:
    """Returns the services whose connectors this Spark lacks."""
    loadable = spark_seams.java(context).org.apache.spark.util.Utils.classIsLoadable
    return [each for each in storage.services if not any(loadable(name) for name in CLASSES[each])]


def _forget_connections(context: SparkContext) -> None:
    """Closes Hadoop's file systems, which otherwise keep the settings that they were opened with."""
    spark_seams.java(context).org.apache.hadoop.fs.FileSystem.closeAll()

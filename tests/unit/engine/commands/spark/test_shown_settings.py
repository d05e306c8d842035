"""No setting that may hold a secret is shown, among all settings that Spark and Hadoop document."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pyspark
import pytest

from dbt.adapters.silt.engine.commands.spark.shown_settings import HIDDEN, address, setting, settings

JARS = Path(pyspark.__file__).parent / "jars"
SECRET = re.compile(
    r"secret|password|passwd|pwd|passphrase|token|credential|private|api-?key|key$|\bsas\b", re.IGNORECASE
)
DEFAULTS = ("core-default.xml", "hdfs-default.xml", "mapred-default.xml", "yarn-default.xml")
CONNECTORS = (
    "fs.azure.account.key.shop.dfs.core.windows.net",
    "fs.azure.sas.container.shop.blob.core.windows.net",
    "fs.azure.account.oauth2.client.secret",
    "fs.gs.auth.service.account.private.key",
    "fs.s3a.bucket.shop.access.key",
    "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net",
    "spark.mysql.passwd",
    "spark.shop.db.pwd",
    "spark.shop.apiKey",
    "spark.sql.catalog.shop.jdbc.password",
    "spark.sql.catalog.shop.uri",
    "spark.datasource.mongodb.connection.uri",
    "spark.driver.extraJavaOptions",
    "spark.executor.extraJavaOptions",
    "spark.executorEnv.SHOP_DSN",
)
USED = ("spark.driver.memory", "spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.sql.ansi.enabled")


def hadoops_names() -> set[str]:
    """The settings that Hadoop documents, from the files of their defaults."""
    found = set()
    for jar in JARS.glob("hadoop-client-*.jar"):
        with zipfile.ZipFile(jar) as file:
            for name in set(DEFAULTS) & set(file.namelist()):
                found |= {each.text or "" for each in ElementTree.fromstring(file.read(name)).iter("name")}
    return found


def sparks_names() -> set[str]:
    """The settings that Spark declares, from the strings of its classes."""
    return {name for jar in JARS.glob("spark-*.jar") for name in declared(jar)}


def declared(jar: Path) -> Iterator[str]:
    with zipfile.ZipFile(jar) as file:
        for name in file.namelist():
            if re.search(r"(config/\w+\$?|SQLConf\$|SSLOptions\$?)\.class$", name):
                yield from (text.decode() for text in re.findall(rb"spark\.[a-zA-Z][\w.]+\w", file.read(name)))


def test_every_setting_of_spark_that_may_be_a_secret_is_hidden() -> None:
    secrets = [name for name in sparks_names() if SECRET.search(name)]
    assert "spark.ssl.keyPassword" in secrets or "spark.authenticate.secret" in secrets
    assert set(settings(dict.fromkeys(secrets, "abc")).values()) == {HIDDEN}


def test_no_setting_of_hadoop_is_shown() -> None:
    names = [f"{prefix}{name}" for name in hadoops_names() for prefix in ("", "spark.hadoop.")]
    assert "fs.s3a.secret.key" in names
    assert set(settings(dict.fromkeys(names, "abc")).values()) == {HIDDEN}


@pytest.mark.parametrize("name", CONNECTORS)
def test_a_setting_that_is_not_known_to_be_harmless_is_hidden(name: str) -> None:
    assert setting(name, "jdbc:postgresql://db/shop?user=me&password=abc") == HIDDEN


@pytest.mark.parametrize("name", USED)
def test_common_harmless_settings_are_shown(name: str) -> None:
    assert setting(name, True) == "True"


def test_an_address_is_shown_without_user_password_and_parameters() -> None:
    assert address("spark://me:abc@host:7077") == f"spark://{HIDDEN}@host:7077"
    assert address("sc://host/;token=abc;use_ssl=true;x-api-key=abc") == (
        f"sc://host/;token={HIDDEN};use_ssl=true;x-api-key={HIDDEN}"
    )
    assert address("s3://shop/house?sig=abc&x=1") == f"s3://shop/house?sig={HIDDEN}&x={HIDDEN}"
    assert address("/data/a;b=c@d?e=f") == "/data/a;b=c@d?e=f"

"""The log's client and Spark use the same storage settings, and no secret is visible."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from dbt.adapters.silt.engine.kernel.storage.settings import SECRETS, StorageSettings
from tests.cloud.servers import ObjectServer

SEEN = """
import json, sys, urllib.request
from pathlib import Path
from pyspark import SparkContext
from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.records.units import Unit
from dbt.adapters.silt.session import diagnosis
from dbt.adapters.silt.session.environment import Environment
from dbt.adapters.silt.records.locations import locations

profile, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
credentials = SiltCredentials.from_dict(profile)
environment = Environment(credentials, locations("silt", credentials.warehouse, {}, folder))


class Plain:
    def run(self, warehouse, text, own_unit=None, *, replace_tables=False):
        return warehouse.execute(text), None

    def job_tags(self):
        return ()


handle = environment.open(Plain())
cursor = handle.cursor()
for text in ("create table t as select id from range(5)", "delete from t where id = 1", "insert into t values (7)"):
    cursor.execute(text)
cursor.execute("select sum(id) from t")
said = {"sum": cursor.fetchone()[0]}
cursor.execute("set")
said["set"] = str(cursor.fetchall())
debugged = diagnosis.diagnose(
    handle.session, environment.catalog, "silt", environment.locations, environment.storages
)
said["debug"] = dict(debugged)
context = SparkContext._active_spark_context
url, application = context.uiWebUrl, context.applicationId
for page in ("environment/", "SQL/", "jobs/", f"api/v1/applications/{application}/environment"):
    said[page] = urllib.request.urlopen(f"{url}/{page}").read().decode()
said["profile"] = str(list(credentials.connection_info()))
for process in Path("/proc").glob("[0-9]*/cmdline"):
    try:
        line = process.read_bytes().decode(errors="replace")
    except OSError:
        continue
    if "pyspark-shell" in line and str(folder) in line:
        said["command line"] = line
try:
    cursor.execute("select * from delta.`" + profile["warehouse"].replace("warehouse", "nowhere", 1) + "/x`")
except Exception as error:
    said["error"] = repr(error)
(folder / "said.json").write_text(json.dumps(said))
handle.close()
"""


def storage_of(server: ObjectServer) -> dict[str, Any]:
    """Returns the server's options by the names of the settings."""
    known = {each.name for each in fields(StorageSettings)}
    settings = {name: value for name, value in server.options.items() if name in known}
    return {**settings, "endpoint": server.endpoint.removesuffix("/devstoreaccount1")}


def test_a_session_reaches_the_storage_with_the_profile_alone_and_no_secret_is_visible(
    server: ObjectServer, tmp_path: Path
) -> None:
    storage = storage_of(server)
    secrets = [value for name, value in storage.items() if name in SECRETS - {"access_key_id"}]
    assert secrets
    (tmp_path / "events").mkdir()
    profile = {
        "warehouse": f"{server.base}/a house é%20 {tmp_path.name}",
        "storage": storage,
        "master": "local[2]",
        "spark_conf": {
            "spark.driver.memory": "1g",
            "spark.ui.enabled": "true",
            "spark.ui.port": "0",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        },
    }
    command = [sys.executable, "-c", SEEN, json.dumps(profile), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr[-3000:]
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["sum"] == 0 + 2 + 3 + 4 + 7
    assert said["debug"]["silt: spark"] == "writes and reads the same files"
    assert {"command line", "error", "environment/", "set"} <= said.keys()
    texts = {**{name: str(text) for name, text in said.items()}, "output": run.stdout + run.stderr}
    left = {file: file.read_bytes().decode(errors="replace") for file in tmp_path.rglob("*") if file.is_file()}
    assert any(tmp_path / "events" in file.parents for file in left)
    objects = server.store(profile["warehouse"].removeprefix(f"{server.base}/"))  # type: ignore[attr-defined]
    stored = {key: objects.child("").read(key) for key in _keys(objects)}
    assert any(key.endswith(".json") for key in stored)
    for secret in secrets:
        assert [name for name, text in texts.items() if secret in text] == []
        assert [file for file, text in left.items() if secret in text] == []
        assert [key for key, data in stored.items() if secret.encode() in data] == []


def _keys(store: Any) -> list[str]:
    within = f"{store._base}/"
    return [key.removeprefix(within) for key in store._keys("")]

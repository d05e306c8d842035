"""Another user of the machine can read neither rows, nor secrets, nor session files of a Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError
from dbt.adapters.silt.session import java_launch, local_spark
from dbt.adapters.silt.session.spark import SessionSettings, _local_folders
from tests.unit.session.processes import run

SECRET = "S3CRET-0f1e2d"
LOOKS = """
import json, os, socket, struct, sys
from pathlib import Path
from pyspark import StorageLevel
from dbt.adapters.silt.session import java_launch, local_spark, spark as module
from dbt.adapters.silt.session.spark import SessionSettings, open_session

def open_to_others(folder):
    if not folder.stat().st_mode & 0o001:
        return []
    below = [each for each in folder.iterdir() if not each.is_symlink()]
    files = [each.name for each in below if each.is_file() and each.stat().st_mode & 0o004]
    return files + [name for each in below if each.is_dir() for name in open_to_others(each)]

def answer_of_port(path):
    "What the driver's port answers who asks for a file (a StreamRequest, of type 6) and knows no secret."
    port = int(session.sparkContext.getConf().get("spark.driver.port"))
    body = struct.pack(">bi", 6, len(path)) + path.encode()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(struct.pack(">q", 8 + len(body)) + body)
        answer = connection.recv(65536)
        while b"requirement" not in answer and b"not found" not in answer and sys.argv[2].encode() not in answer:
            answer += connection.recv(65536)
        return answer.decode(errors="replace")

if sys.argv[1] == "open":
    local_spark.hide_file_name = lambda context: None
    module._local_folders = lambda settings, folder: ()
    java_launch.without_secrets = dict
secret = {"spark.hadoop.fs.s3a.secret.key": sys.argv[2]}
session = open_session(SessionSettings(master="local[1]", spark_conf={"spark.driver.memory": "1g", **secret}))
session.range(1000).repartition(2).persist(StorageLevel.DISK_ONLY).count()
rows = [each.name for each in Path.cwd().rglob("*") if each.name.startswith(("rdd_", "shuffle_"))]
line = Path(f"/proc/{module._running.java.pid}/cmdline").read_text()
known = session._jsc.hadoopConfiguration().get("fs.s3a.secret.key")
[folder] = Path.cwd().rglob("artifacts-*")
for kept in (folder / "of_a_session.py", Path("id_rsa")):
    kept.write_text(sys.argv[2])
    kept.chmod(0o600)
paths = ["of_a_session.py", "../" * len(folder.parts) + str(Path.cwd() / "id_rsa").lstrip("/")]
asked = [answer_of_port(f"/{name}/{path}") for name in ("artifacts", "classes", "files", "jars") for path in paths]
found = {"rows": rows, "open": open_to_others(Path.cwd()), "line": line, "known": known == sys.argv[2]}
print(json.dumps({**found, "asked": asked}))
"""


def look(folder: Path, how: str) -> dict[str, Any]:
    folder.chmod(0o755)
    place = {"TMPDIR": str(folder), "SPARK_LOCAL_DIRS": str(folder)}
    return dict(json.loads(run(LOOKS, folder, how, SECRET, **place).stdout.splitlines()[-1]))


def test_without_the_protection_another_user_reads_rows_secrets_and_artifacts(tmp_path: Path) -> None:
    found = look(tmp_path, "open")
    assert set(found["rows"]) <= set(found["open"])
    assert SECRET in found["line"] and found["known"]
    assert SECRET in found["asked"][0]


def test_another_user_reads_neither_rows_nor_secrets_nor_artifacts(tmp_path: Path) -> None:
    found = look(tmp_path, "closed")
    assert found["rows"] and found["open"] == []
    assert SECRET not in found["line"] and found["known"]
    assert not [each for each in found["asked"] if SECRET in each]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.hadoop.fs.s3a.secret.key", "S"),
        ("spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net", "S"),
        ("spark.authenticate.secret", "S"),
        ("spark.ssl.keyPassword", "S"),
        ("spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:postgresql://host/db?password=S"),
        ("spark.hadoop.x", "https://user:S@host/"),
    ],
)
def test_a_secret_setting_is_not_on_the_command_line_of_java(name: str, value: str) -> None:
    conf = {
        "spark.master": "local",
        name: value,
        "spark.driver.extraJavaOptions": "-Da=b",
        "spark.jars.packages": "a:b:1",
    }
    assert java_launch.without_secrets(conf) == {key: conf[key] for key in conf if key != name}


def test_rows_are_written_to_private_folders_below_the_configured_local_dirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    named = f"{tmp_path}/a, {tmp_path}/b"
    settings = SessionSettings(spark_conf={"spark.local.dir": named})
    folders = [Path(each) for each in _local_folders(settings, "/tmp")]
    assert [each.parent.name for each in folders] == ["a", "b"]
    assert {each.stat().st_mode & 0o777 for each in folders} == {0o700}
    assert local_spark.is_below(",".join(map(str, folders)), named) and not local_spark.is_below(named, named)
    assert _local_folders(SessionSettings(), "/own") == ("/own",)
    assert _local_folders(SessionSettings(master="spark://host:7077"), "/own") == ()
    (tmp_path / "file").touch()
    with pytest.raises(SparkUnavailableError, match=r"in .*file, the value of spark\.local\.dir"):
        _local_folders(SessionSettings(spark_conf={"spark.local.dir": f"{tmp_path}/file"}), "/tmp")

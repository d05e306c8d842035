"""The processes of the tests of the Connect door: an endpoint with a kept Spark, and PySpark as its client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import INTERPRETED, SPARK_SETTINGS
from tests.unit.session.kept_clients import ROOT, Client

TOKEN = "a-token-of-the-tests"

_ANSWERS = """
for line in sys.stdin:
    try:
        code = json.loads(line)
        try:
            answer = eval(code, globals())
        except SyntaxError:
            answer = exec(code, globals())
        said = {"answer": answer}
    except BaseException as error:
        said = {"error": f"{type(error).__name__}: {error}"[:900]}
    print(json.dumps(said, default=str), flush=True)
"""
_ENDPOINT = """
import json, sys
from pathlib import Path
from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.endpoint.connect.service import serve
from dbt.adapters.silt.endpoint.connect.sessions import Door
from dbt.adapters.silt.endpoint.core.house import House, Limits
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.endpoint.core.tokens import Token
from dbt.adapters.silt.session.environment import environment_of

folder, token, profile, limits = json.loads(sys.argv[1])
credentials = SiltCredentials(warehouse=folder + "/warehouse", master="local[2]", keep_alive="10 minutes", **profile)
house = House(environment_of(credentials, Path(folder)), (credentials.database, credentials.schema))
door = Door(Sessions(house, Limits(**limits)), Token(token, "the tests"), is_local=True)
server = serve(door, "127.0.0.1", 0)

def running():
    return [each for known in door._known.values() for each in known.operations.running()]
"""
_CLIENT = """
import json, logging, sys, threading, uuid
import grpc
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession, functions as F
from pyspark.sql.connect.proto import base_pb2 as pb, base_pb2_grpc, commands_pb2, relations_pb2

logging.disable(logging.CRITICAL)
address, token = json.loads(sys.argv[1])

def connected(**more):
    parts = "".join(f";{key}={value}" for key, value in {"user_id": "ann", "token": token, **more}.items())
    session = SparkSession.builder.remote(f"sc://localhost:{address}/{parts}").create()
    session.version
    return session

def rows(frame):
    return sorted(map(list, frame.collect()))

def failure(call):
    try:
        call()
    except PySparkException as error:
        return type(error).__name__, error.getCondition(), error.getSqlState(), str(error)
    raise AssertionError("it did not fail")

spark = connected() if token else None
"""


class Program(Client):
    """A process that runs lines of Python that the test sends."""

    def __init__(self, code: str, arguments: object, cache: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code + _ANSWERS, json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        )


def endpoint(folder: Path, cache: Path, limits: dict[str, object] | None = None, **profile: object) -> Program:
    """Starts an endpoint of a warehouse, with a Spark that other endpoints of the same cache share.

    Args:
        limits: the limits of its sessions.
        profile: fields of its profile.
    """
    folder.mkdir(exist_ok=True)
    conf = {**SPARK_SETTINGS, **INTERPRETED, "spark.sql.session.timeZone": "UTC"}
    return Program(_ENDPOINT, [str(folder), TOKEN, {"spark_conf": conf, **profile}, limits or {}], cache)


def client(of: Program, cache: Path, token: str = TOKEN) -> Program:
    """Starts a client of an endpoint, with `spark`, a session; without a token, it has none."""
    return Program(_CLIENT, [of.run("server.port"), token], cache)


def versions(folder: Path, table: str) -> int:
    """Returns the number of commits of a table."""
    return len([*Path(folder, "warehouse", "main", table, "_delta_log").glob("*.json")])

"""The process of `silt endpoint`: a Spark, the sessions of clients, and the doors through which they come.

Its argument is the descriptor of a pipe with the request, as JSON: the profile as `session.statement_process` reads it,
and the options in `options`. Ctrl-C and SIGTERM end it.
"""

from __future__ import annotations

import ipaddress
import json
import os
import signal
import ssl
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.endpoint.connect.service import Server as ConnectServer
from dbt.adapters.silt.endpoint.connect.service import serve, tls_credentials
from dbt.adapters.silt.endpoint.connect.sessions import Door as ConnectDoor
from dbt.adapters.silt.endpoint.core.house import House, Limits
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.endpoint.core.tokens import Token
from dbt.adapters.silt.endpoint.thrift.server import ThriftServer
from dbt.adapters.silt.endpoint.thrift.service import Door
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, SiltError
from dbt.adapters.silt.materializations.external.declared import of_artifact
from dbt.adapters.silt.session.environment import environment_of
from dbt.adapters.silt.session.spark import stop_spark
from dbt.adapters.silt.session.statement_process import credentials_of

_EXPIRE_SECONDS: Final = 10.0
_FAILED: Final = 2
_MOST_ROWS: Final = 1_000_000
"""The rows of a result that is kept in memory, if no option states them."""

_KEEP_ALIVE: Final = "1 minute"
"""The time for which a Spark that serves Spark Connect outlives the endpoint."""


def main() -> int:
    """Serves until a signal ends it."""
    with os.fdopen(int(sys.argv[1])) as pipe:
        given = json.load(pipe)
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        stop.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)
    try:
        _serve(given, stop)
    except SiltError as error:
        print(f"silt: {error}", file=sys.stderr)
        return _FAILED
    finally:
        stop_spark()
    return 0


def _serve(given: Mapping[str, Any], stop: threading.Event) -> None:
    options = given["options"]
    tls, limits = _tls(options), limits_of(options)
    token = Token.find(options["token_file"])
    sessions = Sessions(_house(given), limits)
    try:
        server = ThriftServer((options["host"], options["port"]), Door(sessions, token), tls)
    except OSError as error:
        raise InvalidSettingError(
            f"{options['host']}:{options['port']} cannot be listened on ({error.strerror})",
            remedy="Choose another `--port`, or `--port 0` for a free port",
        ) from error
    with server:
        serving = threading.Thread(target=server.serve_forever, args=(0.1,), name="silt-thrift", daemon=True)
        serving.start()
        connect = _connect_door(options, sessions, token)
        _announce(options, server.port, None if connect is None else connect.port, token, limits)
        while not stop.wait(_EXPIRE_SECONDS):
            sessions.expire()
            server.door.forget_ended()
        server.shutdown()
        if connect is not None:
            connect.stop()
    sessions.close_all()


def _connect_door(options: Mapping[str, Any], sessions: Sessions, token: Token) -> ConnectServer | None:
    """Opens the door for clients of Spark Connect, if it is requested; its certificate was checked before.

    Raises:
        InvalidSettingError: if the address is in use.
    """
    if options["connect_port"] is None:
        return None
    tls = None
    if (chain := options["tls_cert"]) is not None:
        tls = tls_credentials(Path(options["tls_key"] or chain), Path(chain))
    door = ConnectDoor(sessions, token, is_local=is_loopback(options["host"]))
    return serve(door, options["host"], options["connect_port"], tls)


def _house(given: Mapping[str, Any]) -> House:
    """Opens the warehouse, and starts Spark."""
    credentials = credentials_of(given)
    if given["options"]["connect_port"] is not None:
        credentials = with_connect(credentials)
    root = Path(given["project_root"])
    if credentials.keep_alive:
        os.chdir(root)  # as dbt does: a kept Spark belongs to its project's folder
    environment = environment_of(credentials, root)
    manifest = given.get("manifest")
    declared = of_artifact(Path(manifest), str(root)) if manifest else frozenset()
    environment.release(environment.warehouse(declared))
    current = credentials.database, credentials.schema
    return House(environment, current, given.get("target") or "endpoint", declared)


def with_connect(credentials: SiltCredentials) -> SiltCredentials:
    """Returns the credentials of a profile with a Spark that serves Spark Connect: the profile's, or a kept Spark.

    Raises:
        InvalidSettingError: if the profile's Spark runs on a cluster and does not serve it.
    """
    if credentials.remote or credentials.keep_alive:
        return credentials
    if not (credentials.master or "").startswith("local"):
        raise InvalidSettingError(
            f"the Spark on {credentials.master} does not serve Spark Connect",
            remedy="Start a Spark Connect server there, and name it by `remote` in the profile",
        )
    return replace(credentials, keep_alive=_KEEP_ALIVE)


def limits_of(options: Mapping[str, Any]) -> Limits:
    """Returns the limits of sessions: read-only by default if other machines can connect.

    Raises:
        InvalidSettingError: if other machines could connect without TLS.
    """
    is_local = is_loopback(options["host"])
    if not is_local and options["tls_cert"] is None:
        raise InvalidSettingError(
            f"other machines could read what clients of {options['host']} send, and the token with it",
            remedy="Add --tls-cert and --tls-key, or listen on 127.0.0.1",
        )
    is_read_only = not is_local if options["read_only"] is None else options["read_only"]
    given = options["max_rows"]
    kept = _MOST_ROWS if given is None else given
    return Limits(is_read_only, kept or None, given or None, options["max_seconds"], options["idle"] * 60)


def is_loopback(host: str) -> bool:
    """Returns whether only programs on this machine can connect to an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(options: Mapping[str, Any]) -> ssl.SSLContext | None:
    if options["tls_cert"] is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options["tls_cert"], options["tls_key"])
    except (OSError, ssl.SSLError) as error:
        raise InvalidSettingError(
            f"the certificate {options['tls_cert']} cannot be used ({error})",
            remedy="Name a certificate chain and its key in PEM format",
        ) from error
    return context


def _announce(options: Mapping[str, Any], port: int, connect_port: int | None, token: Token, limits: Limits) -> None:
    """Prints the address and the place of the token, when clients can connect."""
    host = f"[{options['host']}]" if ":" in options["host"] else options["host"]
    url = f"jdbc:hive2://{host}:{port}/{';ssl=true' if options['tls_cert'] else ''}"
    # PySpark sends a token without TLS to the name localhost only.
    connect = f"sc://{'localhost' if is_loopback(options['host']) else host}:{connect_port}"
    more = {} if connect_port is None else {"connect": connect}
    document = {"thrift": url, **more, "token": token.place, "read_only": limits.is_read_only}
    access = "queries only" if limits.is_read_only else "queries and changes"
    lines = [f"{url}  (HiveServer2; {access}; Ctrl-C stops it)"]
    lines += [f"{each}  (Spark Connect)" for each in more.values()]
    lines.append(f"the password is the token in {token.place}")
    print(json.dumps(document) if options["json"] else "\n".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())

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
from pathlib import Path
from types import FrameType
from typing import Any, Final

from dbt.adapters.silt.endpoint.core.session import House, Limits
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
        _announce(options, server.port, token, limits)
        while not stop.wait(_EXPIRE_SECONDS):
            sessions.expire()
        server.shutdown()
    sessions.close_all()


def _house(given: Mapping[str, Any]) -> House:
    """Opens the warehouse, and starts Spark."""
    credentials = credentials_of(given)
    root = Path(given["project_root"])
    if credentials.keep_alive:
        os.chdir(root)  # as dbt does: a kept Spark belongs to its project's folder
    environment = environment_of(credentials, root)
    manifest = given.get("manifest")
    declared = of_artifact(Path(manifest), str(root)) if manifest else frozenset()
    environment.release(environment.warehouse(declared))
    current = credentials.database, credentials.schema
    return House(environment, current, given.get("target") or "endpoint", declared)


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
    return Limits(is_read_only, options["max_rows"] or None, options["idle"] * 60)


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


def _announce(options: Mapping[str, Any], port: int, token: Token, limits: Limits) -> None:
    """Prints the address and the place of the token, when clients can connect."""
    host = f"[{options['host']}]" if ":" in options["host"] else options["host"]
    url = f"jdbc:hive2://{host}:{port}/{';ssl=true' if options['tls_cert'] else ''}"
    document = {"thrift": url, "token": token.place, "read_only": limits.is_read_only}
    access = "queries only" if limits.is_read_only else "queries and changes"
    lines = [f"{url}  (HiveServer2; {access}; Ctrl-C stops it)", f"the password is the token in {token.place}"]
    print(json.dumps(document) if options["json"] else "\n".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""The secret of Spark's Java process is in no environment variable that a dbt template could read meanwhile."""

from __future__ import annotations

import os
import socket
import threading

import pytest
from py4j.protocol import Py4JError

from dbt.adapters.silt.engine import spark_seams


def test_the_gateway_secret_reaches_java_and_no_environment_variable() -> None:
    said: list[bytes] = []
    variables: list[str] = []

    def hear(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            said.append(connection.recv(1000))
            variables.extend(os.environ)
            connection.sendall(b"!xno\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        hearing = threading.Thread(target=hear, args=(listener,), daemon=True)
        hearing.start()
        with pytest.raises((Py4JError, OSError)):
            spark_seams.connect_to_java(listener.getsockname()[1], "S3CRET")
        hearing.join(10)
    assert b"S3CRET" in said[0]
    assert not [name for name in variables if "GATEWAY" in name]

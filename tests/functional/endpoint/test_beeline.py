"""`silt endpoint` as users run it: in a process of its own, with beeline and PyHive, and with TLS."""

from __future__ import annotations

import os
import ssl
import subprocess
from pathlib import Path

import pyspark
import pytest
from pyhive import hive
from thrift.transport import THttpClient
from thrift.transport.TTransport import TTransportException

from tests.functional.endpoint.served import TOKEN, endpoint

BEELINE = Path(pyspark.__file__).parent / "bin" / "beeline"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    (tmp_path / "warehouse").mkdir()
    return tmp_path / "warehouse"


def beeline(url: str, *statements: str, password: str = TOKEN) -> tuple[int, str]:
    """Runs statements by beeline; returns its exit code and all that it prints."""
    given = [part for each in statements for part in ("-e", each)]
    done = subprocess.run(
        [BEELINE, "--outputformat=tsv2", "-u", url, "-n", "ann", "-p", password, *given],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "SPARK_HOME": str(BEELINE.parent.parent)},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_beeline_writes_reads_and_describes_and_cannot_connect_without_the_token(warehouse: Path) -> None:
    with endpoint(warehouse) as served:
        url = f"jdbc:hive2://127.0.0.1:{served['port']}/default"
        table = "create table t (id bigint, price decimal(10, 2), at timestamp)"
        insert = "insert into t values (1, 2.50, timestamp'2024-01-01 00:00:00.25'), (2, null, null)"
        code, shown = beeline(url, table, insert, "select * from t order by id", "describe t", "select * from missing")
        assert "1\t2.50\t2024-01-01 00:00:00.25" in shown, shown
        assert "2\tNULL\tNULL" in shown and "price\tdecimal(10,2)" in shown, shown
        assert "[SILT_RELATION_NOT_FOUND]" in shown and "state=42P01" in shown and code != 0
        code, shown = beeline(f"{url};transportMode=http;httpPath=cliservice", "select count(*) as n from t", "!tables")
        assert code == 0 and "\n2\n" in shown and "main\tt\tTABLE" in shown, shown
        code, shown = beeline(url, "select 1", password="wrong")
        assert code != 0 and "the token is wrong" in shown


def test_clients_use_tls_and_only_read_if_the_endpoint_listens_on_a_network(warehouse: Path, tmp_path: Path) -> None:
    pair = tmp_path / "pair.pem"
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost")
    names = ("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    subprocess.run([*made, *names, "-keyout", pair, "-out", tmp_path / "c.pem"], check=True, capture_output=True)
    with (tmp_path / "c.pem").open() as certificate, pair.open("a") as both:
        both.write(certificate.read())
    with endpoint(warehouse, "--host", "0.0.0.0", "--tls-cert", str(pair)) as served:
        assert served["read_only"] is True and served["thrift"].endswith(";ssl=true")
        context = ssl.create_default_context(cafile=str(tmp_path / "c.pem"))
        transport = THttpClient.THttpClient(f"https://localhost:{served['port']}/cliservice/", ssl_context=context)
        hive.Connection._set_authorization_header(transport, "ann", TOKEN)
        with hive.connect(thrift_transport=transport) as connection, connection.cursor() as cursor:
            cursor.execute("select 1")
            assert cursor.fetchall() == [(1,)]
            with pytest.raises(hive.OperationalError, match="SILT_READ_ONLY"):
                cursor.execute("create table t (id int)")
        with pytest.raises(TTransportException):
            hive.connect("127.0.0.1", served["port"], auth="LDAP", username="ann", password=TOKEN)

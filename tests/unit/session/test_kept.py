"""A kept Spark with real processes: what its clients share and do not share, and how they notice its end."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt.adapters.silt.cli import session as session_command
from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.kernel.errors import KeptSparkInUseError
from dbt.adapters.silt.kept_spark import listing
from dbt.adapters.silt.kept_spark.leases import Record
from dbt.adapters.silt.kept_spark.listing import KeptSpark
from tests.unit.session.kept_clients import Client

_PATIENCE_SECONDS = 300
_FOREVER = "session.range(0, 10**15, 1, 2).selectExpr('sum(hash(id))').collect()"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    yield folder
    for each in sparks(folder):
        listing.stop(each, force=True)


def sparks(cache: Path) -> list[KeptSpark]:
    return list(listing.running(cache / "dbt-silt" / "spark"))


def wait_until_unused(cache: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while any(each.idle_since is None for each in sparks(cache)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def clients(cache: Path) -> Iterator[tuple[Client, Client]]:
    """Two commands, each with a session, that started at the same time."""
    with Client(cache) as first, Client(cache) as second:
        for client in (first, second):
            client.begin("session = open()")
        for client in (first, second):
            client.answer()
        yield first, second


@pytest.fixture
def record(cache: Path, clients: tuple[Client, Client]) -> Record:
    [spark] = sparks(cache)
    return spark.record


class TestShared:
    def test_two_commands_that_start_at_the_same_time_use_one_spark(
        self, cache: Path, clients: tuple[Client, Client]
    ) -> None:
        assert sorted(client.run("attached().is_new") for client in clients) == [False, True]
        [spark] = sparks(cache)
        assert sorted(use.pid for use in spark.users) == sorted(client.process.pid for client in clients)
        assert (listing.memory(spark) or 0) > 100 * 1024**2

    def test_views_functions_and_settings_of_a_command_are_invisible_to_other_commands(
        self, clients: tuple[Client, Client]
    ) -> None:
        first, second = clients
        first.run("session.sql('create temporary view mine as select 1')")
        first.run("session.sql('create temporary function mine_too() returns int return 1')")
        first.run("session.conf.set('spark.sql.ansi.enabled', 'false')")
        assert first.run("session.sql('show views').collect()") != []
        assert second.run("session.sql('show views').collect()") == []
        assert second.run("session.sql('show user functions').collect()") == []
        assert second.run("session.conf.get('spark.sql.ansi.enabled')") == "true"

    def test_the_token_is_in_its_file_only(self, cache: Path, clients: tuple[Client, Client], record: Record) -> None:
        places = {
            f"{pid} {name}": Path(f"/proc/{pid}/{name}").read_bytes()
            for pid in (record.java, record.keeper)
            for name in ("cmdline", "environ")
        }
        places |= {str(path): path.read_bytes() for path in cache.rglob("*") if path.is_file()}
        holders = [place for place, content in places.items() if record.token.encode() in content]
        assert [Path(place).name for place in holders] == ["spark.json"]
        said = ("session.sql('set -v').collect()", "session.sql('set').collect()", "dict(session.conf.getAll)")
        shown = clients[0].run(" + ".join(f"str({each})" for each in said))
        assert record.token not in shown

    def test_the_server_listens_on_the_loopback_interface_only(self, record: Record) -> None:
        tables = "".join(Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6"))
        listening = [line.split()[1] for line in tables.splitlines() if line.split()[3] == "0A"]
        own = [address for address in listening if address.endswith(f":{record.port:04X}")]
        assert [address[-13:-5] for address in own] == ["0100007F"], "127.0.0.1"

    @pytest.mark.parametrize("token", ["", "wrong"])
    def test_a_client_without_the_token_is_refused(
        self, clients: tuple[Client, Client], record: Record, token: str
    ) -> None:
        _, second = clients
        second.run("import dataclasses, grpc; from dbt.adapters.silt.session import connect_client")
        second.run(
            "class Other(connect_client._Channel):\n"
            "    def toChannel(self):\n"
            "        return super().toChannel() if self._token else self._insecure_channel(self.endpoint)\n"
        )
        second.run(
            "def intrude(token):\n"
            "    other = Other(attached())\n"
            "    other._token = token\n"
            "    return connect_client.SparkSession(connection=other).version\n"
        )
        with pytest.raises(RuntimeError, match=r"token|UNAUTHENTICATED"):
            second.run(f"intrude({token!r})")

    def test_a_proxy_in_the_environment_is_not_used(self, cache: Path, clients: tuple[Client, Client]) -> None:
        with Client(cache, grpc_proxy="http://127.0.0.1:9") as behind:
            assert behind.run("open().range(3).count()") == 3
        assert len(sparks(cache)) == 1

    def test_python_functions_run_in_its_workers(self, clients: tuple[Client, Client]) -> None:
        first, _ = clients
        first.run("from pyspark.sql.functions import udf")
        assert first.run("session.range(3).select(udf(lambda x: x * 2, 'long')('id')).toPandas().sum().sum()") == "6"

    def test_a_dataframe_has_only_its_methods_and_columns_as_attributes_as_without_keep_alive(
        self, cache: Path, clients: tuple[Client, Client]
    ) -> None:
        first, _ = clients
        with Client(cache, keep_alive=None) as embedded:
            embedded.run("session = open()")
            for name in ("df", "id", "toPandas", "rdds", "to_arrow", "_private", "__no_such__"):
                asked = f"hasattr(session.range(1), {name!r})"
                assert first.run(asked) == embedded.run(asked), name
        assert first.run("open() is not None and len(kept._attached)") == 1, "the same Spark is used"

    def test_a_command_that_needs_another_spark_says_why(self, cache: Path, clients: tuple[Client, Client]) -> None:
        _, second = clients
        asked = "kept.why_not_used('local[2]', {**conf, **MORE}, None, is_kept=True)"
        assert second.run(asked.replace("MORE", "{}")) is None
        [spark] = sparks(cache)
        assert second.run(asked.replace("MORE", "{'spark.ui.enabled': 'true'}")) == (
            f"Another Spark starts next to the kept Spark {spark.name} of this folder: "
            "it has another value of `spark_conf: spark.ui.enabled`"
        )

    def test_the_children_of_a_process_that_forked_with_the_client_imported_can_attach(
        self, cache: Path, clients: tuple[Client, Client]
    ) -> None:
        with Client(cache) as parent:
            parent.run("import os; kept.connect_client.connect")
            parent.run(
                "def child():\n"
                "    reads, writes = os.pipe()\n"
                "    if os.fork() == 0:\n"
                "        os.write(writes, str(open().range(7).count()).encode())\n"
                "        os._exit(0)\n"
                "    os.wait()\n"
                "    return os.read(reads, 10).decode()\n"
            )
            assert [parent.run("child()") for _ in range(2)] == ["7", "7"]
            assert parent.run("len(kept._attached)") == 0
            assert parent.run("open().range(7).count()") == 7
        assert len(sparks(cache)) == 1

    def test_the_statement_of_a_killed_command_is_cancelled(self, cache: Path, clients: tuple[Client, Client]) -> None:
        with Client(cache) as killed:
            killed.run("session = open()")
            killed.begin(_FOREVER)
            time.sleep(2)  # both cores are busy with an endless statement
            killed.kill()
        assert clients[1].run("session.range(10).repartition(2).count()") == 10
        [spark] = sparks(cache)
        assert killed.process.pid not in {use.pid for use in spark.users}

    def test_a_stop_is_refused_while_commands_run_and_names_them(
        self,
        cache: Path,
        clients: tuple[Client, Client],
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        assert main(["session", "stop"]) == 2
        assert f"(process {clients[0].process.pid})" in capsys.readouterr().err
        assert main(["session", "status"]) == 0
        assert re.search(rf"127\.0\.0\.1:\d+ .* local\[2\] .*\({clients[1].process.pid}\)", capsys.readouterr().out)
        assert main(["session", "status", "--id", "zzz"]) == 2
        [spark] = sparks(cache)
        unaware = KeptSpark(spark.folder, spark.record, (), None)  # as if the commands had just started
        with pytest.raises(KeptSparkInUseError):
            listing.stop(unaware)
        assert clients[0].run("session.range(2).count()") == 2

    def test_no_state_of_a_run_is_visible_to_the_next_run(self, cache: Path, clients: tuple[Client, Client]) -> None:
        first, _ = clients
        java = sparks(cache)[0].record.java
        first.run("session.sql('create global temporary view everybodys as select 1')")
        first.run("session.sql('cache table kept as select 1')")
        first.run("session.sql('create database attic')")
        first.run("session.sql('create table attic.rows using parquet as select 1 as x')")
        first.run("session.sql('create table rows using parquet as select 1 as x')")
        first.run("import os; from pyspark.sql.functions import udf")
        worker = "session.range(1).select(udf(lambda _: os.getppid(), 'long')('id')).collect()[0][0]"
        before = first.run(worker)
        for client in clients:
            client.close()
        wait_until_unused(cache)
        with Client(cache) as third:
            third.run("session = open()")
            assert sparks(cache)[0].record.java == java
            assert third.run("[row[0] for row in session.sql('show databases').collect()]") == ["default"]
            assert third.run("session.sql('show tables').collect()") == []
            assert third.run("session.sql('show views in global_temp').collect()") == []
            third.run("import os; from pyspark.sql.functions import udf")
            assert third.run(worker) != before, "a worker has imported what the next run may have changed"
        wait_until_unused(cache)


class TestEnding:
    def test_its_settings_equal_those_of_an_embedded_spark(self, cache: Path) -> None:
        ask = "{row.key: row.value for row in open().sql('set -v').collect()}"
        with Client(cache, keep_alive=None) as own, Client(cache) as kept:
            own.begin(ask)
            found = kept.run(ask)
            expected = own.answer()
        differing = {key for key in expected if expected[key] != found.get(key)}
        assert differing <= {"spark.sql.warehouse.dir", "spark.sql.ui.retainedExecutions"}, {
            key: (expected[key], found.get(key)) for key in differing
        }

    @pytest.mark.long
    def test_a_forced_stop_is_reported_to_the_running_command_and_the_next_command_starts_another_spark(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        with Client(cache) as client:
            client.run("session = open()")
            client.begin(_FOREVER)
            [before] = sparks(cache)
            assert main(["session", "stop", "--force", "--id", before.name[:6]]) == 0
            with pytest.raises(RuntimeError, match=r"SparkEndedError.*silt session stop --force.*Run it again"):
                client.answer()
            client.run("session = open()")
            assert client.run("session.range(4).count()") == 4
            [after] = sparks(cache)
            assert after.record.java != before.record.java
            os.kill(after.record.java, signal.SIGKILL)
            with pytest.raises(RuntimeError, match=r"SparkEndedError.*killed"):
                client.run("session.range(4).count()")
            assert client.run("open().range(4).count()") == 4
            with pytest.raises(RuntimeError, match=r"SparkEndedError.*killed"):  # even after another has started
                client.run("session.range(4).count()")
            [last] = sparks(cache)
            os.kill(last.record.java, signal.SIGKILL)
        assert session_command.answer([], (), 0.0).document == {"sparks": [], "command_servers": []}

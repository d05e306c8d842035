"""The values of a command server: requests, server keys, packages, and dbt's globals."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.command_server import preparation, request
from dbt.adapters.silt.command_server.request import RUN, BrokenOffError, Request, receive, send
from dbt.adapters.silt.command_server.server import pause
from dbt.adapters.silt.dbt_seams.prepared_classes import restored

_BYTES = st.binary(max_size=20).map(lambda each: each.replace(b"\0", b""))
_TEXTS = st.lists(_BYTES).map(tuple)
_NUMBERS = st.lists(st.integers(0, 1 << 40)).map(tuple)
_PATHS = st.lists(_BYTES.map(os.fsdecode)).map(tuple)
_LIMITS = st.lists(st.tuples(st.integers(0, 20), st.integers(-1, 1 << 60))).map(tuple)


@given(
    st.builds(
        Request,
        st.just(RUN),
        _BYTES.map(os.fsdecode),
        *(_TEXTS, _PATHS, _TEXTS, st.integers(0, 0o777), _NUMBERS, _NUMBERS, _LIMITS, _NUMBERS, _NUMBERS),
    )
)
def test_a_received_request_equals_the_sent_request(request: Request) -> None:
    client, server = socket.socketpair()
    with client, server:
        send(client, request)
        assert receive(server) == (request, [])


@pytest.mark.parametrize("data", [b"", b"\0\0", b"\0\0\0\4abcd", b"\xff\xff\xff\xff", b"\0\0\0\x20abc"])
def test_bytes_that_are_not_a_request_are_refused(data: bytes) -> None:
    client, server = socket.socketpair()
    with client, server:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        with pytest.raises(BrokenOffError):
            receive(server)


@pytest.mark.parametrize("name", ["TZ", "PYTHONPATH", "LC_ALL", "SPARK_HOME", "ARROW_DEFAULT_MEMORY_POOL", "HOME"])
def test_a_variable_that_is_read_at_start_changes_the_key_of_the_server(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = request.server_key()
    monkeypatch.setenv(name, "another")
    assert request.server_key() != before


@pytest.mark.parametrize("name", ["DBT_TARGET", "PATH", "SILT_RUN", "JAVA_HOME"])
def test_a_variable_that_dbt_reads_at_run_time_does_not_change_the_key(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = request.server_key()
    monkeypatch.setenv(name, "another")
    assert request.server_key() == before


def test_a_rewritten_module_counts_as_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "silt_module.py"
    source.write_text("x = 1")
    os.utime(source, (1, 1))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = ModuleType("silt_module")
    module.__file__ = str(source)
    monkeypatch.setitem(sys.modules, "silt_module", module)
    found = preparation.with_imported(preparation.on_path(), time.time_ns() + 10**12)
    assert found.are_unchanged()
    source.write_text("x = 1")
    assert not found.are_unchanged()


def test_a_module_written_after_the_start_of_its_import_counts_as_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "silt_module.py"
    source.write_text("x = 1")
    module = ModuleType("silt_module")
    module.__file__ = str(source)
    monkeypatch.setitem(sys.modules, "silt_module", module)
    assert not preparation.with_imported(preparation.on_path(), 0).are_unchanged()


@pytest.mark.parametrize("name", ["plugin-1.0.dist-info", "added.pth", "module.py"])
def test_an_added_package_or_module_counts_as_a_change(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    found = preparation.on_path()
    (tmp_path / "__pycache__").mkdir()
    assert found.are_unchanged()
    (tmp_path / name).mkdir()
    assert not found.are_unchanged()


def test_globals_of_dbt_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("dbt.silt_globals")
    module.__dict__.update(text=None, mapping={"a": 1}, members={1}, items=[1, 2], same=(1,))
    monkeypatch.setitem(sys.modules, "dbt.silt_globals", module)
    mapping = module.mapping
    with restored():
        module.text = "cached"  # type: ignore[attr-defined]
        module.mapping["b"] = 2
        module.members.add(2)
        del module.items[0]
    assert module.mapping is mapping
    seen = (module.text, module.mapping, module.members, module.items, module.same)
    assert seen == (None, {"a": 1}, {1}, [1, 2], (1,))


def test_a_server_that_still_prepares_leaves_most_of_the_time_to_its_commands() -> None:
    assert pause(0.5, is_used=False) == 0
    assert pause(0.5, is_used=True) > 1

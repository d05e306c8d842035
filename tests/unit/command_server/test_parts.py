"""The parts of a command server that are values: requests, surroundings, packages, and dbt's globals."""

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

from dbt.adapters.silt.command_server import packages, server_key
from dbt.adapters.silt.command_server.preparation import restored
from dbt.adapters.silt.command_server.request import RUN, BrokenOffError, Request, receive, send

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
def test_a_request_arrives_as_it_was_sent(request: Request) -> None:
    client, server = socket.socketpair()
    with client, server:
        send(client, request)
        assert receive(server) == (request, [])


@pytest.mark.parametrize("data", [b"", b"\0\0", b"\0\0\0\4abcd", b"\xff\xff\xff\xff", b"\0\0\0\x20abc"])
def test_what_is_no_request_is_refused(data: bytes) -> None:
    client, server = socket.socketpair()
    with client, server:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        with pytest.raises(BrokenOffError):
            receive(server)


@pytest.mark.parametrize("name", ["TZ", "PYTHONPATH", "LC_ALL", "SPARK_HOME", "ARROW_DEFAULT_MEMORY_POOL", "HOME"])
def test_a_variable_that_is_read_at_start_is_of_the_surroundings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = server_key.key()
    monkeypatch.setenv(name, "another")
    assert server_key.key() != before


@pytest.mark.parametrize("name", ["DBT_TARGET", "PATH", "SILT_RUN", "JAVA_HOME"])
def test_a_variable_that_dbt_reads_as_it_runs_is_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = server_key.key()
    monkeypatch.setenv(name, "another")
    assert server_key.key() == before


def test_a_module_that_is_written_again_is_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "silt_module.py"
    source.write_text("x = 1")
    os.utime(source, (1, 1))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = ModuleType("silt_module")
    module.__file__ = str(source)
    monkeypatch.setitem(sys.modules, "silt_module", module)
    found = packages.with_imported(packages.on_path(), time.time_ns() + 10**12)
    assert found.are_unchanged()
    source.write_text("x = 1")
    assert not found.are_unchanged()


def test_a_module_that_was_written_while_it_was_imported_may_be_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "silt_module.py"
    source.write_text("x = 1")
    module = ModuleType("silt_module")
    module.__file__ = str(source)
    monkeypatch.setitem(sys.modules, "silt_module", module)
    assert not packages.with_imported(packages.on_path(), 0).are_unchanged()


@pytest.mark.parametrize("name", ["plugin-1.0.dist-info", "added.pth", "module.py"])
def test_a_package_that_comes_or_goes_is_a_change(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    found = packages.on_path()
    (tmp_path / "__pycache__").mkdir()
    assert found.are_unchanged()
    (tmp_path / name).mkdir()
    assert not found.are_unchanged()


def test_globals_of_dbt_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("dbt.silt_globals")
    module.__dict__.update(text=None, mapping={"a": 1}, members={1}, items=[1, 2], same=(1,))
    monkeypatch.setitem(sys.modules, "dbt.silt_globals", module)
    mapping = module.mapping
    with restored():
        module.text = "cached"
        module.mapping["b"] = 2
        module.members.add(2)
        del module.items[0]
    assert module.mapping is mapping
    seen = (module.text, module.mapping, module.members, module.items, module.same)
    assert seen == (None, {"a": 1}, {1}, [1, 2], (1,))

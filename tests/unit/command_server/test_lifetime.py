"""When a command server starts, is replaced, and ends, and how that affects its commands."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from dbt.adapters.silt.command_server import idle_time, sockets
from dbt.adapters.silt.engine.kernel import owned_folders
from tests.unit.command_server.conftest import House, ended, is_alive, wait_until
from tests.unit.command_server.little import KEEP_ALIVE, UNANSWERED

FOLDER = "dbt-silt/commands"


def _process(house: House) -> int:
    (server,) = house.servers()
    return server.process


def test_commands_started_together_share_one_server_and_run_concurrently(house: House) -> None:
    meet = "import pathlib, sys, time; p = pathlib.Path(sys.argv[2]); (p / sys.argv[3]).touch()\n"
    meet += "while len(list(p.glob('met-*'))) < 4: time.sleep(0.01)"
    clients = [house.client(meet, str(house.folder), f"met-{number}") for number in range(4)]
    assert [ended(each) for each in clients] == [0] * 4
    assert len(house.servers()) == 1
    assert len(list((house.folder / FOLDER).glob("*.socket"))) == 1


def test_the_next_command_uses_the_same_server(house: House) -> None:
    house.run("")
    first = _process(house)
    house.run("")
    assert _process(house) == first


def test_a_command_leaves_no_state_for_the_next_command(shared: House) -> None:
    shared.run("import os, sys; os.environ['LEFT'] = '1'; sys.left = 1; os.chdir('/'); os.umask(0)")
    code, output = shared.run("import os, sys; print(os.environ.get('LEFT'), hasattr(sys, 'left'), os.getcwd() == '/')")
    assert (code, output) == (0, "None False False")


def test_killing_a_server_does_not_end_its_commands_and_the_next_command_replaces_it(house: House) -> None:
    client, process, permit = house.waiting("raise SystemExit(5)")
    os.kill(_process(house), signal.SIGKILL)
    assert house.run("print('next')") == (0, "next")
    assert is_alive(process)
    permit.touch()
    assert ended(client) == 5


def test_stopping_a_server_does_not_end_its_commands(house: House) -> None:
    client, _, permit = house.waiting("raise SystemExit(5)")
    server = _process(house)
    assert house.stop() == 1
    wait_until(lambda: not is_alive(server))
    assert house.servers() == ()
    permit.touch()
    assert ended(client) == 5


def test_an_idle_server_ends_and_removes_its_socket(house: House) -> None:
    house.variables[KEEP_ALIVE] = "0.2"
    client, _, permit = house.waiting()
    server = _process(house)
    permit.touch()
    assert ended(client) == 0
    wait_until(lambda: not is_alive(server))
    assert list((house.folder / FOLDER).glob("*.socket")) == []
    assert house.run("print('again')") == (0, "again")


def test_the_last_command_decides_how_long_the_server_keeps_running(house: House) -> None:
    tell = "from datetime import timedelta; from dbt.adapters.silt.command_server.idle_time import send; send({})"
    seen = []
    for code in ("", tell.format("timedelta(hours=2)"), "", tell.format("None"), tell.format("timedelta(days=3)")):
        assert house.run(code) == (0, "")
        (server,) = house.servers()
        seen.append(server.keep_alive)
    assert seen == [60, 7200, 7200, 900, 259200]
    assert house.run(tell.format("timedelta(seconds=0.2)")) == (0, "")
    wait_until(lambda: not is_alive(server.process))


def test_a_command_without_a_server_sends_no_idle_time() -> None:
    idle_time.send(timedelta(seconds=1))
    assert idle_time._to_server == []


def test_a_server_ends_when_its_socket_is_removed(house: House) -> None:
    house.variables[KEEP_ALIVE] = "1"
    house.run("")
    server = _process(house)
    next((house.folder / FOLDER).glob("*.socket")).unlink()
    wait_until(lambda: not is_alive(server))


def test_packages_that_change_on_disk_replace_the_server(house: House, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    house.variables["PYTHONPATH"] = str(tmp_path / "site")
    house.run("")
    first = _process(house)
    (tmp_path / "site" / "silt_plugin-1.0.dist-info").mkdir()
    assert house.run("print('new')") == (0, "new")
    assert _process(house) != first
    wait_until(lambda: not is_alive(first))


def test_another_environment_starts_a_second_server(house: House) -> None:
    house.run("")
    assert house.run("import os; print(os.environ['TZ'])", env={"TZ": "Asia/Tokyo"}) == (0, "Asia/Tokyo")
    assert len(house.servers()) == 2


def test_a_client_that_sends_nothing_delays_no_other_client(house: House) -> None:
    house.run("")
    path = next((house.folder / FOLDER).glob("*.socket"))
    silent = sockets.connect(str(path.parent), path.stem)
    assert silent is not None
    with silent:
        assert house.run("print('served')") == (0, "served")


def test_two_hundred_commands_do_not_grow_the_memory_of_the_server(house: House) -> None:
    for _ in range(10):
        house.run("")
    (before,) = house.servers()
    for _ in range(19):
        clients = [house.client("x = bytes(10_000_000)") for _ in range(10)]
        assert [ended(each) for each in clients] == [0] * 10
    (after,) = house.servers()
    assert after.process == before.process
    assert after.commands >= 200
    assert after.memory - before.memory < 1_000_000


def test_only_this_user_may_access_the_folder_and_the_socket(house: House) -> None:
    house.run("")
    folder = house.folder / FOLDER
    modes = {each.suffix: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir() if each.suffix}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert modes == {".socket": 0o600, ".lock": 0o600}


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_other_users_may_access_is_refused(house: House, mode: int) -> None:
    owned_folders.create(str(house.folder / FOLDER))
    (house.folder / FOLDER).chmod(mode)
    code, output = house.run("print('run')")
    (house.folder / FOLDER).chmod(0o700)
    assert code == UNANSWERED
    assert "only this user" in output


def test_a_link_instead_of_the_folder_is_not_followed(house: House, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir(mode=0o700)
    (house.folder / FOLDER).parent.mkdir(mode=0o700)
    (house.folder / FOLDER).symlink_to(tmp_path / "other")
    assert house.run("")[0] == UNANSWERED
    (house.folder / FOLDER).unlink()


def test_a_server_starts_in_a_folder_whose_path_is_too_long_for_a_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir(mode=0o700)
    house = House(folder)
    assert house.run("print('run')") == (0, "run")
    assert house.stop() == 1


def test_a_socket_without_a_listener_is_replaced(house: House) -> None:
    house.run("")
    (server,) = house.servers()
    os.kill(server.process, signal.SIGKILL)
    wait_until(lambda: not is_alive(server.process))
    assert house.run("print('run')") == (0, "run")
    assert _process(house) != server.process


def test_a_server_that_ends_before_it_answers_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
    assert sockets.connect(str(tmp_path), "x") is None
    with pytest.raises(ConnectionRefusedError):
        sockets.connect_or_start(str(tmp_path), "x", lambda _: None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_even_if_the_file_modes_allow_access(house: House) -> None:
    house.run("")
    folder = house.folder / FOLDER
    path = next(folder.glob("*.socket"))
    opened = (path, folder, *list(house.folder.parents)[:3], house.folder)
    modes = [each.stat().st_mode for each in opened]
    for each in opened:
        each.chmod(0o777)
    ask = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({path.name!r})\n"
    ask += "s.sendall(b'1234'); print(s.recv(9))"
    other = subprocess.run(["python3", "-c", ask], cwd=folder, user=65534, capture_output=True, text=True, check=False)
    for each, mode in zip(opened, modes, strict=True):
        each.chmod(mode)
    # The server may close the connection before the bytes are sent, before they are read, or afterwards.
    assert other.stdout.strip() == "b''" or "reset" in other.stderr or "Broken pipe" in other.stderr, other

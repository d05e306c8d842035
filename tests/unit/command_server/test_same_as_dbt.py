"""A command that a server runs looks like its client to the process that started the client."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.silt.command_server.remote_command import NUMBER_LENGTH
from dbt.adapters.silt.command_server.request import START
from tests.unit.command_server.conftest import House, ended, is_alive, wait_until

SHOW = """
import json, os, resource, signal, sys
print(json.dumps({
    "arguments": sys.argv, "folder": os.getcwd(), "variables": dict(os.environ), "mask": os.umask(0),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE), "processors": sorted(os.sched_getaffinity(0)),
    "hangup": signal.getsignal(signal.SIGHUP) == signal.SIG_IGN,
    "interrupt": signal.getsignal(signal.SIGINT) == signal.default_int_handler,
    "child": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "main": [sys.modules["__main__"].__package__, sys.modules["__main__"].__file__],
    "inherited": [
        each for each in sorted(os.listdir("/proc/self/fd"))
        if os.path.exists(f"/proc/self/fd/{each}") and os.get_inheritable(int(each))
    ],
}))
"""


def test_a_command_has_the_arguments_folder_variables_and_umask_of_its_client(shared: House, tmp_path: Path) -> None:
    variables = {"SILT_LITTLE": "a=b\nc", "EMPTY": "", "LARGE": "x" * 100_000}
    code, output = shared.run(SHOW, "-s", "", "ä b", cwd=tmp_path, env=variables, umask=0o027)
    seen = json.loads(output)
    assert code == 0
    assert seen["arguments"] == ["/somewhere/bin/dbt", SHOW, "-s", "", "ä b"]
    assert (seen["folder"], seen["mask"]) == (str(tmp_path), 0o027)
    ours = {**os.environ, "XDG_RUNTIME_DIR": str(shared.folder), **variables}
    assert {name: seen["variables"].get(name) for name in ours} == ours
    assert set(seen["variables"]) - set(ours) <= {"LC_CTYPE"}
    assert seen["main"] == [None, "/somewhere/bin/dbt"]


def test_a_command_has_no_variable_of_the_server_that_its_client_lacks(house: House) -> None:
    house.run("", env={"ONLY_OF_THE_FIRST": "1"})
    assert house.run("import os; print(os.environ.get('ONLY_OF_THE_FIRST'))") == (0, "None")
    assert len(house.servers()) == 1


def test_a_program_started_by_a_command_inherits_only_the_standard_streams(shared: House) -> None:
    _, output = shared.run(SHOW)
    assert json.loads(output)["inherited"] == ["0", "1", "2"]


def test_a_command_has_the_limits_processors_and_signal_handling_of_its_client(shared: House) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    _, output = shared.run(
        SHOW, before=("nohup", "prlimit", f"--nofile=100:{most}", "taskset", "-c", str(min(os.sched_getaffinity(0))))
    )
    seen = json.loads(output.splitlines()[-1])
    assert seen["files"] == [100, most]
    assert seen["processors"] == [min(os.sched_getaffinity(0))]
    assert (seen["hangup"], seen["interrupt"], seen["child"], seen["blocked"]) == (True, True, True, [])
    _, output = shared.run(SHOW, before=("env", "--default-signal=HUP"))  # the tests themselves may run under nohup
    assert not json.loads(output)["hangup"]


@pytest.mark.parametrize("code", [0, 1, 2, 77])
def test_a_client_ends_with_the_exit_code_of_its_command(shared: House, code: int) -> None:
    assert shared.run(f"raise SystemExit({code})") == (code, "")


def test_an_uncaught_error_prints_a_traceback_runs_exit_handlers_and_exits_with_1(shared: House) -> None:
    code, output = shared.run("import atexit; atexit.register(print, 'at exit'); 1 / 0")
    assert code == 1
    assert "ZeroDivisionError" in output and output.endswith("at exit")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT])
def test_a_signal_that_ends_the_command_ends_the_client(shared: House, number: signal.Signals) -> None:
    default = "" if number == signal.SIGKILL else f"signal.signal({number}, signal.SIG_DFL)"
    code, _ = shared.run(f"import os, signal\n{default}\nos.kill(os.getpid(), {number})")
    assert code == -number


def test_a_command_reads_the_clients_input_and_writes_to_its_pipe(shared: House) -> None:
    client = shared.client("import sys; print(sys.stdin.read().upper(), end='')", stdin=subprocess.PIPE)
    assert client.communicate(b"typed\n", timeout=60)[0] == b"TYPED\n"


def test_a_closed_output_pipe_ends_the_command_with_exit_code_1(shared: House) -> None:
    client = shared.client("import sys\nwhile True: print('line')", stderr=subprocess.DEVNULL)
    assert client.stdout is not None
    assert client.stdout.readline() == b"line\n"
    client.stdout.close()
    assert ended(client) == 1


def test_a_closed_input_stream_is_none_in_the_command(shared: House) -> None:
    code, output = shared.run(
        "import sys; print(sys.stdin, file=sys.stderr)", before=("sh", "-c", 'exec "$@" <&-', "-")
    )
    assert (code, output) == (0, "None")


def test_a_terminal_shows_each_line_immediately(shared: House) -> None:
    screen, device = os.openpty()
    asks = "import time; print(all(os.isatty(each) for each in range(3)))\ntime.sleep(600)"
    client, _ = shared.running(asks, stdin=device, stdout=device, stderr=device)
    shown = os.read(screen, 100)
    client.send_signal(signal.SIGTERM)
    assert shown.split()[0] == b"True"
    assert ended(client) == -signal.SIGTERM


WAITS = """
import signal, sys, time
try:
    time.sleep(600)
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_a_command_handles_ctrl_c_itself(shared: House) -> None:
    client, _ = shared.running(WAITS)
    client.send_signal(signal.SIGINT)
    assert ended(client) == 7


def test_a_command_receives_sigterm(shared: House) -> None:
    client, process = shared.running("import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(143))\n" + WAITS)
    client.send_signal(signal.SIGTERM)
    assert ended(client) == 143
    assert not is_alive(process)


def test_killing_a_client_kills_its_command(shared: House) -> None:
    client, process = shared.running(WAITS)
    client.kill()
    ended(client)
    wait_until(lambda: not is_alive(process))


def _state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


ENDS_AS_ITS_COMMAND = """
import os, socket, sys
from dbt.adapters.silt.command_server.remote_command import RemoteCommand
os._exit(RemoteCommand(socket.socket(fileno=int(sys.argv[1]))).end())
"""


def test_a_signal_waits_for_the_process_id_of_the_command() -> None:
    server, connection = socket.socketpair()
    client = subprocess.Popen(
        [sys.executable, "-c", ENDS_AS_ITS_COMMAND, str(connection.fileno())],
        pass_fds=(connection.fileno(),),
        preexec_fn=os.setpgrp,
    )
    with server, connection, subprocess.Popen(["sleep", "600"], preexec_fn=os.setpgrp) as command:
        assert server.recv(len(START)) == START
        client.send_signal(signal.SIGTSTP)
        server.sendall(command.pid.to_bytes(NUMBER_LENGTH, "big"))
        wait_until(lambda: _state(command.pid) == "T" and _state(client.pid) == "T")
        client.send_signal(signal.SIGCONT)
        wait_until(lambda: _state(command.pid) == "S")
        client.send_signal(signal.SIGTERM)
        command.wait()
        server.sendall(signal.SIGTERM.to_bytes(NUMBER_LENGTH, "big"))
        assert ended(client) == -signal.SIGTERM


def test_ctrl_z_stops_client_and_command_and_fg_continues_them(shared: House) -> None:
    client, process, permit = shared.waiting(preexec_fn=os.setpgrp)
    client.send_signal(signal.SIGTSTP)
    wait_until(lambda: _state(process) == "T" and _state(client.pid) == "T")
    permit.touch()
    client.send_signal(signal.SIGCONT)
    assert ended(client) == 0

"""The printed lines, required packages and errors of a python model."""

from __future__ import annotations

import importlib.util
import sys
import threading
import warnings
from pathlib import Path
from types import ModuleType

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.kernel.errors import RelationNotFoundError
from dbt.adapters.silt.materializations.python_models.errors import ModelSource
from dbt.adapters.silt.materializations.python_models.run import check_packages, printed

# Output


def test_threads_print_separate_lines(capsys: pytest.CaptureFixture[str]) -> None:
    before, at_once = sys.stdout, threading.Barrier(3)
    lines: dict[str, list[str]] = {"a": [], "b": []}

    def work(name: str) -> None:
        with printed(lines[name].append, lines[name].append):
            at_once.wait()
            print(name, "said")
            sys.stdout.writelines(["10%\r", "20%\r", "done\n", "the rest"])
            at_once.wait()

    threads = [threading.Thread(target=work, args=(name,)) for name in lines]
    for thread in threads:
        thread.start()
    at_once.wait()
    print("not a model")
    at_once.wait()
    for thread in threads:
        thread.join()
    assert lines == {name: [f"{name} said", "done", "the rest"] for name in lines}
    assert capsys.readouterr().out == "not a model\n" and sys.stdout is before


def test_warnings_are_passed_on_as_lines_and_the_loggers_own_output_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines: list[str] = []

    def take(line: str) -> None:
        print("logged")  # like a log on standard output
        lines.append(line)

    with warnings.catch_warnings(), printed(take, take):
        warnings.simplefilter("always")
        sys.stderr.write(warnings.formatwarning("old", UserWarning, "m.py", 3, "line"))
        print("told")
    assert lines == ["m.py:3: UserWarning: old", "  line", "told"]
    assert capsys.readouterr().out == "logged\n" * 3


def test_streams_are_restored_after_an_interruption() -> None:
    before = (sys.stdout, sys.stderr)
    with pytest.raises(KeyboardInterrupt), printed(print, print):
        raise KeyboardInterrupt
    assert (sys.stdout, sys.stderr) == before


# Packages


def test_installed_packages_are_accepted_in_any_version() -> None:
    check_packages(["pyarrow", "PyArrow", "pandas==0.1", "sklearn; python_version < '3'", "a=1"])


def test_missing_packages_are_named_with_the_command_that_installs_them() -> None:
    with pytest.raises(DbtRuntimeError, match=r"\(no-such==2, nor-this\).*pip install 'no-such==2' 'nor-this'"):
        check_packages(["pandas", "no-such==2", "nor-this"])


# Errors


def of_file(root: Path, text: str) -> tuple[ModelSource, ModuleType]:
    """Runs a model's source as dbt reads it, with the code of its file."""
    (root / "models").mkdir()
    (root / "models" / "m.py").write_text(text)
    source = ModelSource(root, "models/m.py", text.strip())
    module = ModuleType("m")
    exec(compile("\n" * source.lines_before + source.text, source.file, "exec"), module.__dict__)
    return source, module


def said(source: ModelSource, module: ModuleType) -> str:
    with pytest.raises(BaseException) as caught:
        module.model()
    return str(source.error(caught.value).msg)


def test_an_error_names_the_lines_of_the_file_and_of_no_library(tmp_path: Path) -> None:
    found = said(*of_file(tmp_path, "\n\nimport json\n\ndef model():\n    return json.loads('{')\n"))
    assert found.startswith("json.decoder.JSONDecodeError: Expecting property name")
    assert found.endswith("\n  File \"models/m.py\", line 6, in model\n    return json.loads('{')")
    assert found.count("File") == 1


def test_lines_of_modules_of_the_project_are_named_too(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def fail():\n    raise KeyError('x')\n")
    spec = importlib.util.spec_from_file_location("helper", tmp_path / "helper.py")
    assert spec is not None and spec.loader is not None
    helper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helper)
    source, module = of_file(tmp_path, "def model():\n    helper.fail()\n")
    module.__dict__["helper"] = helper
    assert said(source, module) == (
        "KeyError: 'x'\n"
        '  File "models/m.py", line 2, in model\n    helper.fail()\n'
        "  File \"helper.py\", line 2, in fail\n    raise KeyError('x')"
    )


def test_a_missing_model_file_keeps_the_engines_message_and_the_line_numbers_of_the_code(tmp_path: Path) -> None:
    source = ModelSource(tmp_path / "gone", "m.py", "a = 1")
    error = RelationNotFoundError("the table does not exist", table="main.t")
    assert source.error(error).msg == str(error)
    assert source.lines_before == 0 and source.last_line == 1


def test_an_exit_in_a_model_raises_an_error(tmp_path: Path) -> None:
    found = said(*of_file(tmp_path, "def model():\n    raise SystemExit(0)\n"))
    assert found.startswith("The model ended the process (SystemExit)") and "line 2" in found


@pytest.mark.parametrize(
    ("module", "remedy"),
    [
        ("no_such.module", ". Install the package of `no_such` in the environment that runs dbt."),
        ("snowflake.snowpark", " Python models run on PySpark: import from `pyspark.sql`"),
    ],
)
def test_a_missing_module_is_reported_with_what_to_do(tmp_path: Path, module: str, remedy: str) -> None:
    found = said(*of_file(tmp_path, f"def model():\n    import {module}\n"))
    assert found.startswith(f"ModuleNotFoundError: No module named '{module.partition('.')[0]}'{remedy}")

"""Reports errors of a python model to its author, with the project's lines that led to them."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark.errors import PySparkException

from dbt.adapters.silt.engine.commands.spark.errors import of_spark
from dbt.adapters.silt.engine.commands.spark.failures.texts import without_java_stack
from dbt.adapters.silt.engine.kernel.errors import SiltError


@dataclass(frozen=True)
class ModelSource:
    """The source of a python model.

    Attributes:
        root: the folder of its project.
        path: its file, relative to the project.
        text: the file as dbt reads it, without leading and trailing blank lines.
    """

    root: Path
    path: str
    text: str

    @classmethod
    def of(cls, model: Mapping[str, Any], config: Any) -> ModelSource:
        """Returns the source of a node; `config` is dbt's, of the current project."""
        root, package = Path(config.project_root), model["package_name"]
        if package != config.project_name:
            root = root / config.packages_install_path / package
        return cls(root, model["original_file_path"], model["raw_code"])

    @property
    def file(self) -> str:
        """The file name under which the code is compiled."""
        return str(self.root / self.path)

    @property
    def lines_before(self) -> int:
        """The number of lines in the file before the text that dbt has read."""
        try:
            before, found, _ = (self.root / self.path).read_text(encoding="utf-8").partition(self.text)
        except (
            OSError,
            UnicodeDecodeError,
        ):  # a package's file may lie elsewhere; lines then count from the text's first
            return 0
        return before.count("\n") if found else 0

    @property
    def last_line(self) -> int:
        return self.lines_before + self.text.count("\n") + 1

    def error(self, error: BaseException) -> DbtRuntimeError:
        """Returns the error for dbt, with its message and the project's lines that led to it."""
        frames = "".join(traceback.StackSummary.from_list(self._frames(error)).format())
        message = _message(error)
        return DbtRuntimeError(f"{message}{_hint(message)}\n{frames}".rstrip())

    def _frames(self, error: BaseException) -> list[traceback.FrameSummary]:
        """Returns the stack frames in the model and in other modules of the project, without libraries."""
        lines = self.text.splitlines()
        found = []
        for each in traceback.extract_tb(error.__traceback__):
            number = each.lineno or 0
            if each.filename == self.file and self.lines_before < number <= self.last_line:
                line = lines[number - self.lines_before - 1]
                found.append(traceback.FrameSummary(self.path, number, each.name, line=line))
            elif self._is_of_project(each.filename):
                file = str(Path(each.filename).relative_to(self.root))
                found.append(traceback.FrameSummary(file, number, each.name, line=each.line or ""))
        return found

    def _is_of_project(self, file: str) -> bool:
        path = Path(file)
        return file != self.file and path.is_relative_to(self.root) and "site-packages" not in path.parts


_ELSEWHERE = {
    "to_pandas": "write `toPandas()`",
    "snowflake": "import from `pyspark.sql`, such as `from pyspark.sql.functions import col`",
    "bigframes": "`dbt.ref(...)` returns a DataFrame of PySpark, and `.toPandas()` one of pandas",
    "databricks": "import from `pyspark.sql`, or `pyspark.pandas`",
}
"""Spark's equivalents of the libraries and methods of python models on other platforms."""


def _hint(message: str) -> str:
    """Returns the remedy for an unknown module, or a method of another platform, or an empty string."""
    if not message.startswith(("ModuleNotFoundError", "PySparkAttributeError", "AttributeError")):
        return ""
    found = next((what for name, what in _ELSEWHERE.items() if re.search(rf"[`'\"]{name}\b", message)), None)
    if found is not None:
        return f" Python models run on PySpark: {found}."
    missing = re.match(r"ModuleNotFoundError: No module named '(\w+)", message)
    return f". Install the package of `{missing[1]}` in the environment that runs dbt." if missing else ""


def _message(raised: BaseException) -> str:
    error = of_spark(raised) if isinstance(raised, Exception) else raised
    if isinstance(error, SiltError):
        return str(error)
    if isinstance(error, DbtRuntimeError):
        return str(error.msg)
    if isinstance(error, SystemExit):
        return "The model ended the process (SystemExit): a python model ends by returning its rows"
    if isinstance(error, PySparkException):
        return f"{type(error).__name__}: {without_java_stack(str(error))}"
    return "".join(traceback.format_exception_only(error)).strip()

"""Runs python models in this process, on the connection's own session; their rows become a temporary view."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from types import ModuleType
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from packaging.requirements import InvalidRequirement, Requirement
from pyspark import cloudpickle

from dbt.adapters.silt.materializations.python_models.errors import ModelSource
from dbt.adapters.silt.materializations.python_models.results import register, to_frame
from dbt.adapters.silt.materializations.python_models.session import Inputs, ModelSession, by_written_names
from dbt.adapters.silt.session.handle import SiltHandle

_lock = threading.Lock()
_handing_on = threading.local()
"""Whether this thread is logging a line; output that appears meanwhile is the log's own, and is not collected."""


@contextlib.contextmanager
def printed(on_output: Callable[[str], None], on_error: Callable[[str], None]) -> Iterator[None]:
    """Calls the functions with each line that this thread writes to standard output and to standard error."""
    with _redirected("stdout", on_output), _redirected("stderr", on_error):
        yield


class _ByThread:
    """A stream that redirects the output of some threads, and passes on the output of all other threads."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.lines: dict[int, _Lines] = {}

    def write(self, text: str) -> int:
        lines = self.lines.get(threading.get_ident())
        if lines is None or getattr(_handing_on, "now", False):
            return int(self.stream.write(text))
        lines.write(text)
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Lines:
    """Collects whole lines; for a line that is overwritten, such as a progress bar, its last state."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._begun = ""

    def write(self, text: str) -> None:
        *whole, self._begun = (self._begun + text).split("\n")
        _handing_on.now = True
        try:
            for line in whole:
                self._take(line.rstrip("\r").rpartition("\r")[2])
        finally:
            _handing_on.now = False

    def end(self) -> None:
        if self._begun:
            self.write("\n")


@contextlib.contextmanager
def _redirected(name: str, take: Callable[[str], None]) -> Iterator[None]:
    lines = _Lines(take)
    with _lock:
        below = getattr(sys, name)
        stream = below if isinstance(below, _ByThread) else _ByThread(below)
        stream.lines[threading.get_ident()] = lines
        setattr(sys, name, stream)
    try:
        yield
    finally:
        with _lock:
            del stream.lines[threading.get_ident()]
            if not stream.lines and getattr(sys, name) is stream:
                setattr(sys, name, stream.stream)
        lines.end()


logger = AdapterLogger("Silt")

VIEW_VARIABLE = "__silt_view__"
"""The variable with the name of the temporary view for the rows, in the code that `macros/` renders."""

BATCH_VARIABLE = "__silt_batch__"
"""The variable with the queries that replace a microbatch's inputs: SQL name -> query."""

_numbers = itertools.count()


def run_python_model(handle: SiltHandle, model: Mapping[str, Any], code: str, source: ModelSource) -> str:
    """Runs a python model's compiled code and registers its result.

    The user's `model(dbt, session)` is called with a `dbt` whose `ref` and `source` return Spark DataFrames over pinned
    snapshots, all of a consistent cut. `results.to_frame` lists the accepted return types.

    Args:
        handle: the connection.
        model: the node.
        code: the user's code, then dbt's, which sets VIEW_VARIABLE and BATCH_VARIABLE at its end.
        source: source of the user's part.

    Returns:
        The name of the temporary view with the result.

    Raises:
        DbtRuntimeError: if the code fails, or does not return rows.
    """
    name = str(model["name"])
    packages = model["config"].get("packages") or []
    check_packages([packages] if isinstance(packages, str) else packages)
    with (
        printed(lambda line: logger.info(f"{name}: {line}"), lambda line: logger.warning(f"{name}: {line}")),
        _module(name, source) as module,
    ):
        try:
            with handle.busy():
                return _run(handle, model, "\n" * source.lines_before + code, module)
        except (Exception, SystemExit) as error:  # SystemExit would end dbt's thread, and dbt would wait forever
            raise source.error(error) from error


def _run(handle: SiltHandle, model: Mapping[str, Any], code: str, module: ModuleType) -> str:
    _refuse_ephemeral(model)
    space = module.__dict__
    session = ModelSession(handle)
    space["spark"] = session  # the session's name in notebooks
    # Without this module's own `from __future__`.
    exec(compile(code, str(module.__file__), "exec", dont_inherit=True), space)
    function = space.get("model")
    if function is None:
        raise DbtRuntimeError("The file has no function `model`: write `def model(dbt, session)`, which returns rows")
    inputs = Inputs(handle, _names_of_inputs(model, module), space[BATCH_VARIABLE])
    dbt = space["dbtObj"](inputs.frame)
    dbt.ref, dbt.source = by_written_names(dbt.ref, "dbt.ref"), by_written_names(dbt.source, "dbt.source")
    rows = function(dbt, session)
    expected = handle.warehouse.schema_of(f"select * from {dbt.this}") if dbt.is_incremental else None
    view = str(space[VIEW_VARIABLE])
    register(handle.session, to_frame(handle.session, rows, expected), view)
    return view


def _refuse_ephemeral(model: Mapping[str, Any]) -> None:
    """Checks that the model refers to no ephemeral model, whose SQL dbt would have put before the code."""
    pieces = [str(each["id"]).rpartition(".")[2] for each in model.get("extra_ctes") or []]
    if pieces:
        raise DbtRuntimeError(
            f"The model reads `{pieces[0]}`, which is ephemeral, but a Python model can only read tables and "
            "views: materialize it as a view"
        )


def _names_of_inputs(model: Mapping[str, Any], module: ModuleType) -> Iterator[str]:
    """Yields the SQL names of the relations that the model refers to, from dbt's part of the code."""

    def name(relation: str) -> str:
        return relation

    for each in model["refs"]:
        names = [each["package"]] if each.get("package") else []
        yield module.ref(*names, each["name"], v=each.get("version"), dbt_load_df_function=name)
    for each in model["sources"]:
        yield module.source(*each, dbt_load_df_function=name)


@contextlib.contextmanager
def _module(name: str, source: ModelSource) -> Iterator[ModuleType]:
    """Creates a module for the code: importable by name, as data classes need, and sent whole to Spark's workers."""
    module = ModuleType(f"silt_python_model_{next(_numbers)}_{re.sub(r'[^0-9a-zA-Z]', '_', name)}")
    module.__file__ = source.file
    sys.modules[module.__name__] = module
    cloudpickle.register_pickle_by_value(module)
    try:
        yield module
    finally:
        cloudpickle.unregister_pickle_by_value(module)
        del sys.modules[module.__name__]


def check_packages(packages: Iterable[str]) -> None:
    """Checks that each package, in pip's syntax, is installed; warns about a different version.

    Raises:
        DbtRuntimeError: if packages are missing.
    """
    missing = [package for package in packages if not _is_here(package)]
    if missing:
        wanted = " ".join(f"'{package}'" for package in missing)
        raise DbtRuntimeError(
            f"The model needs packages that are not installed next to dbt ({', '.join(missing)}): "
            f"run `pip install {wanted}` there"
        )


def _is_here(package: str) -> bool:
    try:
        wanted = Requirement(package)
    except InvalidRequirement:
        logger.warning(f"`packages` of the model: {package} is not checked, because it is not a valid pip requirement")
        return True
    if wanted.marker is not None and not wanted.marker.evaluate():
        return True
    try:
        installed = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        return importlib.util.find_spec(wanted.name.replace("-", "_").split(".")[0]) is not None
    if not wanted.specifier.contains(installed, prereleases=True):
        logger.warning(f"The model requires {package}, but {wanted.name} {installed} is installed and is used")
    return True

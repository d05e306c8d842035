"""dbt's adapter suite is inherited completely: no class of the installed suite is missing without a reason."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import dbt.tests.adapter
import pytest

from tests.functional.not_applicable import HELPERS, NOT_APPLICABLE, REFUSED, RESTATED

_SUITE = dbt.tests.adapter.__name__
_HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def suite() -> dict[str, type]:
    """The suite's classes with tests, except for aliases, by their names below `dbt.tests.adapter`."""
    [root] = dbt.tests.adapter.__path__
    classes = [each for module in _modules(Path(root), _SUITE, "*.py") for each in _own_classes(module)]
    return {_name(each): each for each in classes if _tests(each) and not _is_alias(each)}


@pytest.fixture(scope="module")
def ours() -> list[type]:
    """The test classes of `tests/functional`, in all its folders."""
    classes = [each for module in _modules(_HERE, "tests.functional", "test_*.py") for each in _own_classes(module)]
    return [each for each in classes if each.__name__.startswith("Test")]


@pytest.fixture(scope="module")
def inherited(ours: list[type]) -> set[str]:
    """The names of the suite's classes that are run here."""
    return {_name(base) for each in ours for base in _suite_bases(each)}


def test_every_class_of_the_suite_is_inherited_or_listed(suite: dict[str, type], inherited: set[str]) -> None:
    missing = sorted(suite.keys() - inherited - HELPERS.keys() - NOT_APPLICABLE.keys())
    assert not missing, "neither inherited in tests/functional nor listed in not_applicable.py:\n" + "\n".join(missing)


def test_listed_names_exist_in_the_suite_and_are_listed_once(suite: dict[str, type]) -> None:
    listed = [*HELPERS, *REFUSED, *RESTATED, *NOT_APPLICABLE]
    assert sorted(listed) == sorted(set(listed))
    tests = {f"{name}.{test}" for name, each in suite.items() for test in _tests(each)}
    assert set(listed) <= suite.keys() | tests


def test_classes_listed_as_not_inherited_are_not_inherited(inherited: set[str]) -> None:
    assert not inherited & (HELPERS.keys() | NOT_APPLICABLE.keys())


def test_a_helper_is_a_base_of_other_classes_of_the_suite(suite: dict[str, type]) -> None:
    for name in HELPERS:
        assert any(issubclass(each, suite[name]) and each is not suite[name] for each in suite.values()), name


def test_only_listed_classes_have_their_own_tests(ours: list[type]) -> None:
    own = {
        f"{_name(base)}.{test}"
        for each in ours
        for base in _suite_bases(each)
        for test in _tests(base)
        if getattr(each, test) is not getattr(base, test)
    }
    allowed = REFUSED.keys() | RESTATED.keys()
    unlisted = sorted(test for test in own if not {test, test.rpartition(".")[0]} & allowed)
    assert not unlisted, "a deviation is a fixture, with the same assertions:\n" + "\n".join(unlisted)
    assert {name for name in allowed if not any(f"{test}.".startswith(f"{name}.") for test in own)} == set()


def test_no_class_of_the_suite_is_skipped(ours: list[type]) -> None:
    skipped = [
        f"{each.__module__}.{each.__name__}"
        for each in ours
        for mark in getattr(each, "pytestmark", [])
        if mark.name in ("skip", "skipif", "xfail") and any(_suite_bases(each))
    ]
    assert not skipped


def _modules(root: Path, package: str, pattern: str) -> Iterator[ModuleType]:
    for file in sorted(root.rglob(pattern)):
        if file.name != "__init__.py":
            yield importlib.import_module(".".join((package, *file.relative_to(root).with_suffix("").parts)))


def _own_classes(module: ModuleType) -> list[type]:
    return [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]


def _name(suite_class: type) -> str:
    return f"{suite_class.__module__}.{suite_class.__name__}".removeprefix(f"{_SUITE}.")


def _tests(each: type) -> list[str]:
    return [name for name, value in inspect.getmembers(each, inspect.isfunction) if name.startswith("test")]


def _is_alias(each: type) -> bool:
    """Returns whether the class only gives another class with tests a name that pytest collects: its body is empty."""
    return all(_is_dunder(name) for name in vars(each)) and any(_tests(base) for base in each.__bases__)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _suite_bases(each: type) -> Iterator[type]:
    """Returns the suite's classes that a test class runs: the nearest ones, because a subclass does not run its base's
    case.
    """
    for base in each.__bases__:
        if base.__module__.startswith(f"{_SUITE}.") and _tests(base) and not _is_alias(base):
            yield base
        else:
            yield from _suite_bases(base)

"""The dbt commands of a run that is published as a whole, and the reasons why it is not published.

A result counts until a later command has another result for the same node. A command is later than another if it began
after the other had ended; the clocks of two machines do not decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dbt.adapters.silt.engine.kernel import printable
from dbt.adapters.silt.engine.kernel.printable import number_of
from dbt.adapters.silt.engine.kernel.table import json_fields
from dbt.adapters.silt.engine.kernel.table.json_fields import FORMAT

TESTS: Final = ("test.", "unit_test.")
"""The beginnings of the unique ids of tests."""


@dataclass(frozen=True)
class CommandResults:
    """The results of a command that has ended.

    Attributes:
        passed, failed: the unique ids of the nodes, tests and on-run hooks that succeeded or failed in it.
        missing: the unique ids of the selected nodes and tests that it has not run.
        problem: how it ended, if not by itself, as the end of a sentence.
    """

    passed: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    problem: str = ""


@dataclass(frozen=True)
class RunCommand:
    """A dbt command that works, or has worked, on the branch of a run.

    Attributes:
        id: dbt's id of the command.
        line: its command line, for messages.
        host, process: its process, for messages.
        began_ms: its beginning, in milliseconds since 1970-01-01 UTC.
        selected: the unique ids of the nodes and tests that it is to run.
        tests_count: whether the run is not published while a test of this command has failed.
        after: the ids of the commands that had begun before it.
        after_end: the ids of the commands that had ended before it began.
        results: its results, if it has ended by itself or by an error.
    """

    id: str
    line: str
    host: str = ""
    process: int = 0
    began_ms: int = 0
    selected: frozenset[str] = frozenset()
    tests_count: bool = True
    after: frozenset[str] = frozenset()
    after_end: frozenset[str] = frozenset()
    results: CommandResults | None = None

    def __str__(self) -> str:
        return f"`{self.line}` (process {self.process} of {self.host})"

    @property
    def left(self) -> frozenset[str]:
        """The nodes and tests that a later command must run."""
        return self.selected if self.results is None else self.results.missing

    def settles(self, other: RunCommand) -> bool:
        """Returns whether the results of this command replace those of another command."""
        if self.results is None:
            return False
        # The last changes of a killed command are not known; its nodes must run in a command that began after it.
        return other.id in (self.after if other.results is None else self.after_end)


@dataclass(frozen=True)
class Standing:
    """The reasons why a run is not published.

    Attributes:
        at_work: the commands that work.
        failed: the failed nodes and tests, by their unique ids, each with its last command.
        left: the nodes and tests that have not run, in the same way.
        ended: the commands that were killed, or ended by an error outside of their nodes.
    """

    at_work: Sequence[RunCommand] = ()
    failed: Mapping[str, RunCommand] = field(default_factory=dict)
    left: Mapping[str, RunCommand] = field(default_factory=dict)
    ended: Sequence[RunCommand] = ()

    def __bool__(self) -> bool:
        return bool(self.at_work or self.failed or self.left or self.ended)

    @property
    def has_failed(self) -> bool:
        """Whether a node, a test or a command has failed or was killed, so that more than patience is needed."""
        return bool(self.failed or self.left or self.ended)

    @property
    def reason(self) -> str:
        """Why the run is not published, as the beginning of a sentence."""
        parts = [f"{each} is at work" for each in self.at_work]
        problems = [each.results.problem if each.results else f"{each} was killed" for each in self.ended]
        if self.failed:
            parts.append(f"{_counted(self.failed)} failed")
        elif self.ended:
            parts += problems
        elif self.left:
            parts.append(f"{_counted(self.left)} {'has' if len(self.left) == 1 else 'have'} not run")
        return "; ".join(parts)

    def lines(self, own: str | None = None) -> list[str]:
        """Returns the failures in other commands than `own`, a line for each command."""
        found: dict[str, list[str]] = {}
        lines_of = {each.id: each.line for each in (*self.ended, *self.failed.values(), *self.left.values())}
        for each in self.ended:
            how = each.results.problem if each.results else f"was killed (process {each.process} of {each.host})"
            found.setdefault(each.id, []).append(how)
        for names, how in ((self.failed, "failed"), (self.left, "not run")):
            for command in dict.fromkeys(each.id for each in names.values()):
                known = sorted(_name(name) for name, each in names.items() if each.id == command)
                found.setdefault(command, []).append(f"{how}: {_shown(known)}")
        return [f"`{lines_of[each]}`: {'; '.join(parts)}" for each, parts in found.items() if each != own]


def standing(
    commands: Iterable[RunCommand], is_alive: Callable[[RunCommand], bool], tests_count: bool = False
) -> Standing:
    """Returns the reasons why a run is not published.

    Args:
        commands: all commands that have worked on its branch.
        is_alive: returns whether a command without results still works.
        tests_count: whether tests count that may fail for their own command.
    """
    known = list(commands)
    at_work = [each for each in known if each.results is None and is_alive(each)]
    failed: dict[str, RunCommand] = {}
    left: dict[str, RunCommand] = {}
    ended: list[RunCommand] = []
    for each in known:
        if each in at_work:
            continue
        later = [other for other in known if other.settles(each)]
        done = {name for other in later if other.results for name in (*other.results.passed, *other.results.failed)}
        ignored = () if each.tests_count or tests_count else TESTS
        own_left = _standing(each.left, done, ignored)
        left.update(dict.fromkeys(own_left, each))
        if each.results is None:
            ended += [each] if own_left else []
            continue
        failed.update(dict.fromkeys(_standing(each.results.failed, done, ignored), each))
        if each.results.problem and not any(other.results and not other.results.problem for other in later):
            ended.append(each)
    return Standing(at_work, failed, {name: left[name] for name in left if name not in failed}, ended)


def _standing(names: Iterable[str], done: set[str], ignored: tuple[str, ...]) -> list[str]:
    return sorted(each for each in names if each not in done and not each.startswith(ignored or ("\0",)))


_SHOWN: Final = 5


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _name(unique_id: str) -> str:
    """Returns a node's name: a generic test has a hash after it, and a model possibly a version."""
    kind, *rest = unique_id.split(".")
    return ".".join(rest[1:2] if kind == "test" else rest[1:]) or unique_id


def _counted(names: Iterable[str]) -> str:
    tests = sum(each.startswith(TESTS) for each in names)
    nodes = len(list(names)) - tests
    counts = ((nodes, "node"), (tests, "test"))
    return " and ".join(number_of(number, noun) for number, noun in counts if number)


def to_json(command: RunCommand) -> dict[str, Any]:
    """Returns the document of a command."""
    found = command.results
    results = found and {
        "passed": sorted(found.passed),
        "failed": sorted(found.failed),
        "missing": sorted(found.missing),
        "problem": found.problem,
    }
    return {
        "format": FORMAT,
        "id": command.id,
        "line": command.line,
        "host": command.host,
        "process": command.process,
        "began": command.began_ms,
        "selected": sorted(command.selected),
        "testsCount": command.tests_count,
        "after": sorted(command.after),
        "afterEnd": sorted(command.after_end),
        "results": results,
    }


def from_json(body: Any) -> RunCommand:
    """Parses the document of a command, which anyone who can write the warehouse may have written.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: if it is not such a document.
    """
    found = json_fields.struct(body, "results")
    return RunCommand(
        id=_text(body, "id"),
        line=_text(body, "line"),
        host=_text(body, "host"),
        process=json_fields.required(json_fields.long(body, "process"), "process"),
        began_ms=json_fields.required(json_fields.long(body, "began"), "began"),
        selected=_set(body, "selected"),
        tests_count=json_fields.required(json_fields.boolean(body, "testsCount"), "testsCount"),
        after=_set(body, "after"),
        after_end=_set(body, "afterEnd"),
        results=None if found is None else _results(found),
    )


def _results(body: Mapping[str, Any]) -> CommandResults:
    passed, failed, missing = (_set(body, each) for each in ("passed", "failed", "missing"))
    return CommandResults(passed, failed, missing, _text(body, "problem"))


def _text(body: Mapping[str, Any], key: str) -> str:
    return printable.line(json_fields.required(json_fields.text(body, key), key))


def _set(body: Mapping[str, Any], key: str) -> frozenset[str]:
    return frozenset(map(printable.line, json_fields.required(json_fields.strings(body, key), key)))

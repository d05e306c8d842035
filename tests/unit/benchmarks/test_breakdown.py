"""The parts of the breakdown of a command that need neither dbt nor Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from rich.console import Console

from benchmarks import report
from benchmarks.projects.breakdown import BESIDE, PHASES, Run, summary
from benchmarks.projects.marked_dbt import Marks


def marks(*events: str) -> Marks:
    found = Marks(began=0)
    for name in events:
        found.on_event(SimpleNamespace(info=SimpleNamespace(name=name)))
    return found


def test_the_first_time_of_an_event_and_the_last_end_of_a_node_are_kept() -> None:
    found = marks("FoundStats", "NodeStart", "NodeFinished", "NodeStart", "NodeFinished", "Formatting").moments
    assert list(found) == ["FoundStats", "NodeStart", "NodeFinished", "last NodeFinished"]
    assert found["NodeStart"] <= found["NodeFinished"] < found["last NodeFinished"]


def test_the_phases_of_a_command_add_up_to_the_whole() -> None:
    names = ["began", *(end for _, _, end in PHASES[:-1])]
    run = Run({name: float(position**2) for position, name in enumerate(names)}, {"python": 1.0, "java": None})
    *phases, (_, whole) = summary("build", [run]).phases.items()
    assert sum(seconds or 0 for _, seconds in phases) == whole == (len(names) - 1) ** 2


def test_a_phase_that_a_command_lacks_is_not_shown() -> None:
    runs = [
        Run({"began": 0.0, "imported": each, "ended": 9.0}, {"python": each, "java": None}) for each in (1.0, 3.0, 2.0)
    ]
    found = summary("parse", runs)
    assert found.phases["dbt is imported"] == 2.0
    assert found.phases["the first node"] is None
    assert found.processor == {"python": 2.0, "java": None}
    assert set(found.beside) == {name for name, _, _ in BESIDE}


@pytest.mark.parametrize("shown", ["dbt is imported", "beside: Java starts", "processor: python", "2.00"])
def test_the_table_has_a_line_for_each_phase(shown: str) -> None:
    found = summary("parse", [Run({"began": 0.0, "imported": 2.0}, {"python": 1.0})])
    text = "".join(segment.text for segment in Console(width=120).render(report.breakdown_table([found])))
    assert shown in text

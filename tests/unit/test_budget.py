"""The size of the package: each room has a number of lines, and a change that needs more says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dbt" / "adapters" / "silt"

# The lines of Python that each room may have. A room is a top-level folder of the package or of its engine; "." is the
# files of the package's root. A commit that removes code lowers the number of its room.
ROOMS = {
    ".": 1716,
    "cli": 5911,
    "command_server": 1550,
    "dbt_seams": 1072,
    "duckdb_file": 551,
    "endpoint": 4833,
    "engine": 1211,
    "engine/answers": 1250,
    "engine/arrow": 1164,
    "engine/audits": 642,
    "engine/builds": 1050,
    "engine/catalog": 8768,
    "engine/changed_keys": 1254,
    "engine/commands": 14277,
    "engine/datasource": 2250,
    "engine/kernel": 24813,
    "engine/sql": 7791,
    "engine/statements": 8315,
    "kept_spark": 1150,
    "materializations": 6674,
    "methods": 2390,
    "records": 2178,
    "report": 1815,
    "runs": 4857,
    "session": 4552,
    "status_lines": 550,
}
TOTAL = 112285
"""The lines that all rooms may have together, less than the sum, so that not every room can be full."""

SLACK = 150
"""A room may be this much smaller than its number; then the commit that removed the code lowers the number."""


def lines_of_rooms() -> Counter[str]:
    """Returns the lines of Python in each room."""
    lines: Counter[str] = Counter()
    for file in PACKAGE.rglob("*.py"):
        lines[room_of(file.relative_to(PACKAGE))] += len(file.read_text(encoding="utf-8").splitlines())
    return lines


def room_of(file: Path) -> str:
    """Returns the room of a file, given relative to the package."""
    folders = file.parts[:-1]
    return "/".join(folders[: 2 if folders[:1] == ("engine",) else 1]) or "."


def problem(room: str, lines: int, allowed: Mapping[str, int]) -> str | None:
    """Returns what a commit must do about the lines of a room, or None."""
    if room not in allowed:
        return f"{room} is a new room of {lines} lines: add it to ROOMS, and say in the commit's message why it exists"
    if lines > allowed[room]:
        return (
            f"{room} has {lines} lines, {lines - allowed[room]} more than its {allowed[room]}: remove code, or raise "
            "its number in ROOMS and say why in the message of the same commit"
        )
    if lines < allowed[room] - SLACK:
        return f"{room} has only {lines} of its {allowed[room]} lines: lower its number in ROOMS to {lines}"
    return None


@pytest.mark.parametrize("room", sorted(lines_of_rooms().keys() | ROOMS.keys()))
def test_a_room_has_the_lines_that_its_number_allows(room: str) -> None:
    assert problem(room, lines_of_rooms()[room], ROOMS) is None


def test_the_package_has_at_most_its_total_number_of_lines() -> None:
    lines = sum(lines_of_rooms().values())
    assert lines <= TOTAL, (
        f"the package has {lines} lines, {lines - TOTAL} more than its {TOTAL}: remove code, or raise TOTAL and say "
        "why in the message of the same commit"
    )


def test_a_room_is_a_top_level_folder_of_the_package_or_of_its_engine() -> None:
    files = ("impl.py", "cli/shell/prompt.py", "engine/warehouse.py", "engine/kernel/log/builds.py")
    assert [room_of(Path(file)) for file in files] == [".", "cli", "engine", "engine/kernel"]


def test_a_change_of_a_rooms_size_is_told_what_to_do() -> None:
    allowed = {"cli": 1000}
    assert problem("cli", 1000, allowed) is None
    assert problem("cli", 1000 - SLACK, allowed) is None
    assert "1 more than its 1000: remove code, or raise its number" in str(problem("cli", 1001, allowed))
    assert "lower its number in ROOMS to 849" in str(problem("cli", 1000 - SLACK - 1, allowed))
    assert "new room of 5 lines" in str(problem("attic", 5, allowed))

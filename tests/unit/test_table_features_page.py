"""The table features in the documentation match the features in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table.actions import Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.features import _FEATURES, check_readable, check_writable

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "table-features.md"


def rows() -> dict[str, tuple[str, str]]:
    """Returns for each feature whether it is read and written according to the page."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[1] in ("yes", "no"):
            found.update(dict.fromkeys(re.findall(r"`(\w+)`", cells[0]), (cells[1], cells[2])))
    return found


def test_every_feature_of_the_code_is_on_the_page() -> None:
    known = {name for name in _FEATURES if not name.endswith("-preview")}
    assert known <= set(rows())
    assert set(rows()) - known == {"catalogManaged", "coordinatedCommits", "geospatial"}


@pytest.mark.parametrize("name", sorted(rows()))
def test_an_unsupported_feature_is_refused_by_name_and_other_features_are_readable(name: str) -> None:
    protocol = Protocol(3, 7, (name,), (name,))
    if rows()[name][0] == "yes":
        check_readable(protocol, "t")
        return
    with pytest.raises(UnsupportedFeatureError, match=name):
        check_readable(protocol, "t")


IN_USE = {
    f"icebergCompatV{n}": Metadata(
        "id", '{"type":"struct","fields":[]}', configuration={f"delta.enableIcebergCompatV{n}": "true"}
    )
    for n in (1, 2, 3)
}


def test_the_features_that_are_read_and_not_written_are_these() -> None:
    assert {name for name, (read, write) in rows().items() if (read, write) == ("yes", "no")} == set(IN_USE)


@pytest.mark.parametrize("name", sorted(IN_USE))
def test_a_feature_that_is_not_written_is_refused_by_name_if_it_is_in_use(name: str) -> None:
    protocol = Protocol(1, 7, None, (name,))
    check_readable(protocol, "t", IN_USE[name])
    with pytest.raises(UnsupportedFeatureError, match=name):
        check_writable(protocol, "t", IN_USE[name])

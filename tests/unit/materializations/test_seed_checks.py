"""Mistakes in a seed's file that would change its rows or columns without an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.materializations.seed_checks import check_file


def model(folder: Path, text: str) -> dict[str, Any]:
    (folder / "days.csv").write_text(text, encoding="utf-8")
    return {"name": "days", "root_path": str(folder), "original_file_path": "days.csv"}


@pytest.mark.parametrize(
    ("text", "delimiter", "said"),
    [
        ("", None, "the file of the seed days is empty"),
        ("id;name\n1;a\n", None, "its first line has no ',', but ';'. Set `delimiter: ';'` in the seed's config"),
        ("id|name\n1|a\n", ";", "has no ';', but '|'"),
        ("id\tname\n1\ta\n", ",", 'Set `delimiter: "\\t"`'),
        ('id,name\n1,"a\n2,b\n', None, 'line 2 of the seed days has a quotation mark (") that is not closed'),
        ('id,name\n1,"a\nb"\n3,"c\n', ",", "line 4 of the seed days"),
    ],
)
def test_a_file_that_would_be_read_wrongly_is_refused(
    tmp_path: Path, text: str, delimiter: str | None, said: str
) -> None:
    with pytest.raises(SiltError) as caught:
        check_file(model(tmp_path, text), (), delimiter)
    assert said in str(caught.value)


READ = (
    "The seed days has `{0}` in the column `{1}`, which is read as the number {2}: to keep the text, add "
    "`{1}: string` to the seed's `column_types`"
)


@pytest.mark.parametrize(
    ("text", "types", "said"),
    [
        ("id,name\n1,a\n", ("amount",), []),
        ("id\n1;2\n", (), []),
        ('"id;name"\n1\n', (), []),
        ('id,size\n1,5" pipe\n', (), []),
        ("\ufeffid,name\n1,a\n", ("id",), []),
        (
            "id,name,id\n1,a,2\n",
            (),
            ["The seed days has 2 columns `id` in its first line: dbt renames the later columns"],
        ),
        (",name\n1,a\n", (), ["The seed days has no name for column 1 in its first line: dbt gives it one"]),
        (
            "id,amount\n1,2\n",
            ("amuont",),
            ["`column_types` of the seed days names `amuont`, which it does not have: did you mean `amount`?"],
        ),
        (
            "id,zip\n1,\n2,02345\n3,NULL\n",
            ("id",),
            [
                "The seed days has `02345` in the column `zip`, which is read as the number 2345: to keep the zeros of "
                "a code, add `zip: string` to the seed's `column_types`"
            ],
        ),
        ("id,zip,day,code\n1,02345,2026-01-01,0x1\n", ("zip",), []),
        ("rate\n50%\n7\n", (), [READ.format("50%", "rate", "50")]),
        ("code\n29051_00040\n", (), [READ.format("29051_00040", "code", "2905100040")]),
        ("price\n1\n$5.00\n", (), [READ.format("$5.00", "price", "5.0")]),
        ('n\n"1,000"\n', (), [READ.format("1,000", "n", "1000")]),
        ("phone\n+31612345678\n", (), [READ.format("+31612345678", "phone", "31612345678")]),
        ("n\n\u0661\u0662\n", (), [READ.format("\u0661\u0662", "n", "12")]),
        ("x\n0.1234567890123456789\n1\n", (), [READ.format("0.1234567890123456789", "x", "0.12345678901234568")]),
        ("x\n0.5\n12345678901234567\n", (), [READ.format("12345678901234567", "x", "1.2345678901234568e+16")]),
        ("rate,code,price\n50%,a_1,$x\n7%,b_2,$5\n", ("rate",), []),
        ("x,y,z\n1e5,-1,NaN\n-.5,12345678901234567,2.\n", (), []),
        ("rate,n\n0.5,0\n-0.25,10\n", (), []),
    ],
)
def test_a_file_with_other_names_is_read_with_a_warning(
    tmp_path: Path, text: str, types: tuple[str, ...], said: list[str]
) -> None:
    assert check_file(model(tmp_path, text), types, None) == said


def test_a_line_with_too_many_values_is_named(tmp_path: Path) -> None:
    with pytest.raises(SiltError) as caught:
        check_file(model(tmp_path, 'id,name\n1,"a\nb"\n2,b,c\n'), (), ",")
    assert "line 4 of the seed days has 3 values, but the first line names 2 columns" in str(caught.value)
    check_file(model(tmp_path, "id,name\n1\n"), (), ",")
    check_file({"name": "days", "root_path": str(tmp_path), "original_file_path": "days.csv"}, (), ",,")


READ_AS_DBT = """
from dbt_common.clients.agate_helper import from_csv
from dbt.adapters.silt.materializations import seed_checks

print(from_csv("days.csv", ["zip"]).column_names)
"""


def test_agate_does_not_repeat_the_warnings(tmp_path: Path) -> None:
    (tmp_path / "days.csv").write_text("id,id,,zap\n1,2,3,4\n")
    done = subprocess.run([sys.executable, "-c", READ_AS_DBT], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("('id', 'id_2', 'c', 'zap')\n", "")

"""The runner of pages: a wrong page fails, and the error names the page and the line."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.documentation import output
from tests.documentation.page import PageError
from tests.documentation.runner import run_page


def no_spark() -> SparkSession | None:
    """Fails if a block starts Spark."""


def run(text: str, folder: Path) -> Path:
    """Runs a page with this text, without Spark; returns the folder of its project."""
    page, project = folder / "page.md", folder / "project"
    project.mkdir()
    page.write_text(text, encoding="utf-8")
    run_page(page, project, no_spark)  # type: ignore[arg-type]
    return project


def test_a_block_with_a_title_is_a_file_until_a_later_block_replaces_it(tmp_path: Path) -> None:
    block = '```sql title="models/a.sql"\nselect {}\n```\n'
    show = "```console\n$ cat models/a.sql\nselect {}\n```\n"
    project = run("".join([block.format(1), show.format(1), block.format(2), show.format(2)]), tmp_path)
    assert (project / "models" / "a.sql").read_text() == "select 2\n"


def test_a_page_has_a_default_project_and_profile(tmp_path: Path) -> None:
    project = run("Words.\n", tmp_path)
    assert (project / "dbt_project.yml").is_file()
    assert "spark.sql.shuffle.partitions" in (project / "profiles.yml").read_text()


def test_the_profile_of_a_page_gets_the_settings_of_a_fast_spark_and_keeps_its_own(tmp_path: Path) -> None:
    profile = "shop:\n  outputs:\n    dev: {type: silt, spark_conf: {spark.sql.session.timeZone: Asia/Tokyo}}\n"
    project = run(f'```yaml title="profiles.yml"\n{profile}```\n', tmp_path)
    text = (project / "profiles.yml").read_text()
    assert "Asia/Tokyo" in text and "spark.sql.shuffle.partitions" in text


def test_python_blocks_share_their_variables(tmp_path: Path) -> None:
    run("```python\na = 1\n```\n\n```python\n>>> a + 1\n2\n>>> b = 3\n```\n\n```python\nassert b == 3\n```\n", tmp_path)


def test_a_script_runs_in_the_project(tmp_path: Path) -> None:
    script = '```python title="load.py"\nimport sys\n\nprint("loads", *sys.argv[1:])\n```\n'
    run(f"{script}\n```console\n$ python load.py july\nloads july\n```\n", tmp_path)


def test_an_exported_variable_and_a_changed_folder_last_to_the_end_of_the_page(tmp_path: Path) -> None:
    commands = "```console\n$ export RUN=july\n$ mkdir landing\n$ cd landing\n```\n"
    run(f"{commands}\nThen.\n\n```console\n$ echo $RUN in $(basename $PWD)\njuly in landing\n```\n", tmp_path)


def test_a_silt_command_is_run_on_the_projects_warehouse(tmp_path: Path) -> None:
    run("<!-- fails -->\n```console\n$ silt show main.orders\nsilt: ...warehouse...\n```\n", tmp_path)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("```console\n$ echo a\nb\n```\n", 2, "the page shows"),
        ("```console\n$ true\n$ false\n```\n", 3, "failed with exit code 1"),
        ("<!-- fails -->\n```console\n$ true\n```\n", 3, "was to fail"),
        ("```console\necho a\n```\n", 2, "begins with a command"),
        ("```console\n$ silt nothing\n```\n", 2, "failed with exit code 2"),
        ("```python\n1 / 0\n```\n", 2, "ZeroDivisionError"),
        ("```python\n>>> 1 + 1\n3\n```\n", 2, "Expected"),
        ("<!-- fails: zero -->\n```python\n1 / 1\n```\n", 3, "was to fail"),
        ("<!-- fails: nought -->\n```python\n1 / 0\n```\n", 3, "ZeroDivisionError"),
        ("```yaml\na: [\n```\n", 2, "ParserError"),
        ("```json\n{\n```\n", 2, "JSONDecodeError"),
        ("Words.\n\n```rust\nfn main() {}\n```\n", 3, "is not run: give it a title"),
        ("```\nwords\n```\n", 1, "is not run: give it a title"),
        ("<!-- not run -->\n```rust\nfn main() {}\n```\n", 2, "say why"),
        ("<!-- not run: no Rust -->\n\nWords.\n", 3, "none follows"),
        ("<!-- fails -->\n", 1, "none follows"),
        ("!!! note\n    ```sql\n    select 1\n    ```\n", 2, "take it out"),
        ('```sql title="../a.sql"\nselect 1\n```\n', 1, "would not be in the project"),
        ("<!-- result -->\n```sql\nselect 1\n```\n", 2, "a block of `text`"),
        ("<!-- result -->\n```text\n1\n```\n", 3, "no SQL block before"),
    ],
)
def test_a_wrong_page_fails_at_its_line(text: str, line: int, problem: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=rf"page\.md:{line}: (?s:.*){problem}"):
        run(text, tmp_path)


def test_a_block_that_is_not_run_passes_with_its_reason(tmp_path: Path) -> None:
    run("<!-- not run: no Rust here -->\n```rust\nfn main() {}\n```\n", tmp_path)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a ... d", "a  b\nc d"),
        ("10:00:00  Done in 1.20s", "23:59:59  Done in 0.07s"),
        ("a  b", "\x1b[32ma\x1b[0m b"),
        ("| a |\n|----|", "|  a  |\n|-------|"),
        ("run 01234567-89ab-cdef-0123-456789abcdef", "run 11111111-2222-3333-4444-555555555555"),
        ("2024-01-01 10:00:00", "2024-01-01 10:00:00"),
        ("by dbt-silt/0.1.0", "by dbt-silt/2.0.0rc1"),
    ],
)
def test_outputs_that_differ_only_in_varying_parts_match(shown: str, printed: str) -> None:
    assert output.matches(shown, printed)


def test_a_current_time_matches_the_authors_time() -> None:
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    assert output.matches("at 2024-01-01 10:00:00", f"at {now}")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [("a", "a b"), ("a ... d", "a b c"), ("2 rows", "3 rows"), ("2024-01-01 10:00:00", "2024-01-01 10:00:01")],
)
def test_other_outputs_do_not_match(shown: str, printed: str) -> None:
    assert not output.matches(shown, printed)


MODEL_AND_QUERY = """
```sql title="models/a.sql"
select 1 as n
```

```console
$ dbt run
...
10:00:00  1 of 1 OK created sql view model main.a .... [OK in 0.50s]
...
```

```sql
select n + 1 as m from a
```

<!-- result -->
```text
+---+
|m  |
+---+
|2  |
+---+
```
"""


def run_with_spark(text: str, folder: Path, session: SparkSession) -> None:
    page, project = folder / "page.md", folder / "project"
    project.mkdir()
    page.write_text(text, encoding="utf-8")
    run_page(page, project, lambda: session)


def test_sql_runs_on_the_warehouse_that_dbt_writes(page_session: SparkSession, tmp_path: Path) -> None:
    refused = "<!-- fails: main.b -->\n```sql\nselect * from main.b\n```\n"
    run_with_spark(MODEL_AND_QUERY + refused, tmp_path, page_session)


def test_rows_that_differ_from_the_querys_result_fail(page_session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=r"page\.md:19: the page shows"):
        run_with_spark(MODEL_AND_QUERY.replace("|2  |", "|3  |"), tmp_path, page_session)


def test_a_page_that_creates_its_own_session_does_not_stop_spark(page_session: SparkSession, tmp_path: Path) -> None:
    stops = "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\nspark.stop()\n"
    with pytest.raises(PageError, match="does not stop Spark"):
        run_with_spark(f"```python\n{stops}```\n", tmp_path, page_session)
    assert page_session.range(1).count() == 1

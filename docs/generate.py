"""Generates reference pages from the code: profile, configs, errors, the command `silt` ...

`make docs` runs it; `tests/documentation/test_site.py` fails if a page differs from its output.

    python -m docs.generate
"""

from __future__ import annotations

import inspect
import re
from argparse import _ArgumentGroup, _SubParsersAction
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Final

from dbt.adapters.silt.cli.main import SUBCOMMANDS, parser_of
from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.table.properties import OTHERS, IsolationLevel, Property, TableProperties
from docs import schemas
from docs.configs_page import configs_page
from docs.markdown import (
    GENERATED,
    attribute_docstrings,
    described_attributes,
    kind_of,
    one_line,
    sentence,
    table,
)

DOCS = Path(__file__).parent
MACROS = DOCS.parent / "macros"

PROFILE_GROUPS: Mapping[str, Sequence[str]] = {
    "Where the tables are": ("database", "schema", "warehouse", "databases", "storage", "branch"),
    "Which Spark runs": (
        *("master", "remote", "keep_alive", "spark_conf", "storage_jars"),
        *("accelerator", "accelerator_jars", "accelerator_required"),
        *("python_functions", "stored_code", "external_paths"),
    ),
    "Where other engines find the tables": ("catalog", "duckdb_file"),
    "How a run continues": ("run_id", "resume", "reuse", "publish", "publish_attempts", "held_inputs"),
    "Upkeep": ("upkeep",),
    "Which rules tables have": ("audit", "enforced_keys"),
    "Conflicts with other writers": ("isolation_level", "max_commit_attempts", "statement_attempts"),
    "The target that packages see": ("target_type",),
}
"""The fields of a profile by topic; `tests/documentation/test_site.py` checks that it is complete."""

SPARK_CONF = (
    "Every setting of Spark is allowed, except the settings that correct tables depend on, which an error names. "
    "Common settings:\n\n"
    "- `spark.driver.memory`, such as `4g`: the memory of an embedded Spark, which runs entirely in the driver. "
    "The default is half of the memory of the machine or container, at least 1 GiB and at most 8 GiB.\n"
    "- `spark.sql.shuffle.partitions`: the number of partitions of joins and aggregates. The default is "
    "eight for each core, at least 16 and at most 200.\n"
    "- `spark.local.dir`: a folder on a large, fast disk for rows that do not fit into memory.\n"
    "- `spark.sql.session.timeZone`: the time zone in which timestamps are shown and parsed.\n\n"
    "[Growing data](../running/growing-data.md) explains when to change them.\n"
)
"""The section of the page about settings that the profile passes to Spark."""

OTHER_PROPERTIES: Mapping[str, str] = {
    **dict.fromkeys(
        (f"delta.enableIcebergCompatV{number}" for number in (1, 2, 3)), "Read-only: such a table is not written."
    ),
    "delta.autoOptimize.autoCompact": "`false`: [upkeep](../running/upkeep.md) leaves the table alone; `true` and "
    "`auto`: it compacts the table, as without the property.",
    "delta.enableVariantShredding": "Whether files may contain VARIANT columns in shredded form.",
    "delta.minReaderVersion": "Not above the table's version: features are enabled by name.",
    "delta.minWriterVersion": "Not above the table's version: features are enabled by name.",
    "delta.parquet.compression.codec": "The compression codec of new data files.",
    "delta.rowTrackingSuspended": "Whether new rows currently get no row ids.",
}
"""The effects of properties without an attribute in TableProperties; the other properties have no effect."""


# Profile


def profile_page() -> str:
    described, own = described_attributes(SiltCredentials), {each.name: each for each in fields(SiltCredentials)}
    parts = [
        GENERATED,
        "# Profile\n",
        "A target of `profiles.yml` with `type: silt` needs no other field. An unknown field is an "
        "error, which names the most similar field. Editors with YAML support complete and check the file with "
        "[profile.schema.json](profile.schema.json).\n",
        '```yaml title="profiles.yml"\nshop:\n  target: dev\n  outputs:\n    dev:\n      type: silt\n```\n',
    ]
    for title, names in PROFILE_GROUPS.items():
        rows = [(f"`{name}`", kind_of(own[name]), _default(own[name]), sentence(described[name])) for name in names]
        parts += [f"## {title}\n", table(("field", "type", "default", "description"), rows)]
    parts.append(f"## Settings of `spark_conf`\n\n{SPARK_CONF}")
    parts += _storage_fields()
    parts.append("## From dbt\n")
    parts.append(table(("field", "default", "description"), [("`threads`", "1", "How many nodes run in parallel.")]))
    return "\n".join(parts)


def _storage_fields() -> list[str]:
    described = described_attributes(StorageSettings)
    own = fields(StorageSettings)
    rows = [(f"`{each.name}`", kind_of(each), _default(each), sentence(described[each.name])) for each in own]
    return [
        "## The fields of `storage`\n",
        "They apply to the log's client and to Spark: see [object stores](../running/object-stores.md). Take secrets "
        "from environment variables, `{{ env_var('DBT_ENV_SECRET_KEY') }}`.\n",
        table(("field", "type", "default", "description"), rows),
    ]


def _default(attribute: Field[Any]) -> str:
    if attribute.name == "master":
        return "`local[*]`"
    if attribute.default is MISSING or attribute.default is None:
        return ""
    return f"`{str(attribute.default).lower() if isinstance(attribute.default, bool) else attribute.default}`"


# Table properties


def properties_page() -> str:
    texts = attribute_docstrings(TableProperties)
    known = [(name, each) for name, each in vars(TableProperties).items() if isinstance(each, Property)]
    rows = [
        (
            f"`{each.key}`",
            _property_default(name, each),
            "" if each.settable else "no",
            _without_none(texts[name]),
        )
        for name, each in sorted(known, key=lambda pair: pair[1].key)
    ]
    return "\n".join(
        [
            GENERATED,
            "# Table properties\n",
            "Set them by the config `tblproperties`, by `create table ... tblproperties (...)` or by `alter table ... "
            "set tblproperties (...)`. A key that begins with `delta.` and is not listed here is an error; other keys "
            "belong to you and are kept unchanged. Durations are intervals such as `interval 7 days`.\n",
            table(("property", "default", "settable", "description"), rows),
            "A model's table gets `delta.setTransactionRetentionDuration` = `interval 90 days`, unless its config sets "
            "another value: for this time a rerun recognises committed work.\n",
            "`delta.constraints.<name>` contains the condition of a CHECK constraint. `delta.feature.<name>` = "
            "`supported` enables a [feature of the protocol](table-features.md).\n",
            "## Other properties\n",
            "They may be set, and are kept with the table:\n",
            table(
                ("property", "note"), [(f"`{key}`", OTHER_PROPERTIES.get(key, "No effect.")) for key in sorted(OTHERS)]
            ),
        ]
    )


def _without_none(text: str) -> str:
    """Returns a docstring as a sentence for users, to whom None in Python is an unset property."""
    return sentence(text.replace("None ", "unset "))


def _property_default(name: str, each: Property[Any]) -> str:
    value = each.default
    if value is None:
        return ""
    if name.endswith("_ms"):
        return f"`interval {value // 86_400_000} days`"
    if isinstance(value, IsolationLevel):
        return f"`{value.value}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


# Errors


def errors_page() -> str:
    parts = [
        GENERATED,
        "# Errors\n",
        "The message of an error begins with its code, names the table and its version, and ends with a remedy. dbt "
        "shows it as the node's error; a program catches the class or its kind, from "
        "`dbt.adapters.silt.engine.kernel.errors`. The winner is another writer that committed first.\n",
        table(
            ("code", "summary"),
            [
                (f"[`{each.code}`](#{anchor(each)})", _summary(each))
                for kind in kinds()
                for each in (kind, *below(kind))
            ],
        ),
    ]
    for kind in kinds():
        parts.append(f"## {kind.__name__}\n")
        parts += [_error(each) for each in (kind, *below(kind))]
    parts += [
        "## Errors of dbt itself\n",
        "Some mistakes in `profiles.yml` are found by dbt before it loads this adapter, so the text is dbt's own and "
        "says less than it could:\n",
        table(("dbt says", "the mistake", "what to do"), OF_DBT),
    ]
    return "\n".join(parts)


OF_DBT: Final = (
    (
        "`Could not find profile named 'shopp'`",
        "`profile` in `dbt_project.yml`, or `--profile`, names no entry of `profiles.yml`",
        "Compare it with the names at the left margin of `profiles.yml`; `dbt debug` prints the file's path",
    ),
    (
        "`at path ['threads']: 'four' is not of type 'integer'`",
        "`threads` is not a whole number; the text names neither the file nor the target",
        "Write `threads: 4` in the target of `profiles.yml` that the command uses (`target:`, or `--target`)",
    ),
    (
        "`Could not find adapter type slit!`",
        "`type` in the target is misspelt, or the adapter is installed in another environment",
        "Write `type: silt`; `dbt --version` lists the adapters of this environment",
    ),
)
"""What dbt says, the mistake and its remedy, for errors that end dbt before it loads the adapter."""


def kinds() -> list[type[SiltError]]:
    """Returns the kinds of errors, each with its own kind of remedy."""
    return SiltError.__subclasses__()


def below(kind: type[SiltError]) -> Iterator[type[SiltError]]:
    """Yields the public errors of a kind, each before its subclasses."""
    for each in kind.__subclasses__():
        if each.__module__ == SiltError.__module__:
            yield each
            yield from below(each)


def anchor(error: type[SiltError]) -> str:
    """Returns the anchor of an error's section, which is as stable as the code."""
    return error.code.lower()


def _error(error: type[SiltError]) -> str:
    base = "" if error.__base__ is SiltError else f", derived from `{error.__base__.__name__}`"
    return (
        f"### {error.code} {{ #{anchor(error)} }}\n\n`{error.__name__}`{base}. {_summary(error)}\n\n"
        f"**What to do.** {sentence(error.remedy)}\n"
    )


def _summary(error: type[SiltError]) -> str:
    return (inspect.getdoc(error) or "").splitlines()[0]


# The command


def command_page() -> str:
    """Returns the hand-written page with its generated part replaced."""
    page = (DOCS / "running" / "silt-command.md").read_text(encoding="utf-8")
    head, begin, rest = page.partition("<!-- generated: begin -->\n")
    _, end, tail = rest.partition("<!-- generated: end -->\n")
    if not begin or not end:
        raise ValueError("docs/running/silt-command.md has lost the comments around its generated part")
    return f"{head}{begin}\n{_subcommands()}\n{end}{tail}"


def _subcommands() -> str:
    (action,) = (each for each in parser_of(SUBCOMMANDS)._actions if isinstance(each, _SubParsersAction))
    parsers = action.choices
    shared = [group for group in parsers[SUBCOMMANDS[0]]._action_groups if group.title == "which warehouse"]
    parts = []
    for name in SUBCOMMANDS:
        groups = [group for group in parsers[name]._action_groups if group.title != "which warehouse"]
        parts += [f"### silt {name}\n", f"{one_line(parsers[name].description or '')}\n"]
        parts.append(table(("argument", "description"), [row for group in groups for row in _arguments(group)]))
    parts += ["### Which warehouse\n", f"{shared[0].description} Every subcommand has these options.\n"]
    parts.append(table(("argument", "description"), list(_arguments(shared[0]))))
    return "\n".join(parts)


def _arguments(group: _ArgumentGroup) -> Iterator[tuple[str, str]]:
    for each in group._group_actions:
        if each.dest == "help":
            continue
        value = "" if each.nargs == 0 else f" {each.metavar or each.dest}"
        shown = ", ".join(f"`{option}{value}`" for option in each.option_strings) or f"`{value.strip()}`"
        yield shown, sentence(each.help or "")


# Macros and variables


def macros_page() -> str:
    parts = [
        GENERATED,
        "# Macros and variables\n",
        "## Macros\n",
        "For `dbt run-operation NAME --args '{...}'`. All except `silt_rollback` and `silt_register` can be hooks: "
        '`post_hook="{{ silt_optimize(this) }}"`.\n',
    ]
    for file in sorted((MACROS / "maintenance").glob("*.sql")):
        for name, arguments, text in operations(file.read_text(encoding="utf-8")):
            parts.append(f"### {name}\n\n`{name}({arguments})`\n\n{text}\n")
    parts += [
        "## Variables\n",
        table(
            ("variable", "description"),
            [
                (
                    "`silt_run_id`",
                    "The id of the logical run: `--vars '{silt_run_id: ...}'`. Overrides all else.",
                ),
                (
                    "`silt_reuse`",
                    "`--vars 'silt_reuse: false'` builds every node, despite [`reuse`](../running/reuse.md).",
                ),
                (
                    "`silt_publish`",
                    "`--vars 'silt_publish: after_tests'` takes precedence over [`publish`](../running/publishing.md).",
                ),
                (
                    "`silt_session_changes`",
                    "With `drop`, a held run that is continued loses what "
                    "[sessions](../running/held-runs.md#sessions-on-the-branch-of-a-run) have changed on its branch.",
                ),
            ],
        ),
        "## Settings of the session\n",
        table(
            ("setting", "default", "description"),
            [
                (
                    "`silt.audits`",
                    "",
                    "[Audits](audits.md) that the session's statements must pass before they are committed, as JSON.",
                ),
                (
                    "`silt.branch`",
                    "",
                    "The id of a run that is not published: statements read and write on its "
                    "[branch](../running/held-runs.md#sessions-on-the-branch-of-a-run).",
                ),
                (
                    "`silt.file_format`",
                    "",
                    "With `delta`, a statement or a write of a DataFrame that names another format of files (`using "
                    "parquet`) creates a Delta table. Without it, it is refused.",
                ),
                (
                    "`silt.retentionDurationCheck.enabled`",
                    "`true`",
                    "Whether VACUUM refuses to delete files that are younger than the table's retention.",
                ),
                (
                    "`silt.missingColumnCheck.enabled`",
                    "`true`",
                    "`false` lets queries read nulls for a column that a data file lacks, although the log states "
                    "values for it. Such queries read every file, because the log's statistics cannot be "
                    "trusted. A statement that changes the table is still refused: copy the rows into a new table.",
                ),
                (
                    "`silt.reuse`",
                    "`never`",
                    "`unchanged` skips CREATE OR REPLACE TABLE ... AS if the table holds the rows already.",
                ),
                (
                    "`spark.databricks.delta.commitInfo.userMetadata`",
                    "",
                    "A note on each commit of the session.",
                ),
            ],
        ),
    ]
    return "\n".join(parts)


def operations(source: str) -> Iterator[tuple[str, str, str]]:
    """Yields the macros that users call: name, arguments, and the text of the comment before it."""
    for comment, name, arguments in re.findall(
        r"\{#--((?:(?!--#\}).)*)--#\}\s*\{% macro (\w+)\((.*?)\) %\}", source, re.S
    ):
        if name != "silt_carry_out":
            yield name, arguments, _text_of(comment)


def _text_of(comment: str) -> str:
    """Returns a macro's comment as Markdown, with its indented commands as code blocks."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(comment))
    shown = [
        f"```text\n{inspect.cleandoc(each)}\n```" if each.startswith(" ") else one_line(each) for each in paragraphs
    ]
    return "\n\n".join(shown)


PAGES = {
    "reference/profile.md": profile_page,
    "reference/configs.md": configs_page,
    "reference/table-properties.md": properties_page,
    "reference/errors.md": errors_page,
    "reference/macros-and-variables.md": macros_page,
    "running/silt-command.md": command_page,
    "reference/profile.schema.json": schemas.profile_schema,
    "reference/configs.schema.json": schemas.configs_schema,
    "reference/diff.schema.json": schemas.diff_schema,
}


def main() -> None:
    """Writes the pages."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

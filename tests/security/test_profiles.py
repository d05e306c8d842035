"""Profiles and projects that another user wrote: `silt` runs no code when it renders and reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.cli.project import jinja

TEMPLATES = (
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ env_var.__globals__ }}",
    "{{ env_var.__code__ }}",
    "{{ cycler.__init__.__globals__.os.system('touch {marker}') }}",
    "{{ lipsum.__globals__['os'].system('touch {marker}') }}",
    "{{ self.__init__.__globals__ }}",
    "{{ ('%s' | format(1)).__class__ }}",
    "{{ '{0.__class__.__init__.__globals__}'.format(env_var) }}",
    "{{ joiner.__init__ | attr('__globals__') }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}{{ os.system('touch {marker}') }}",
    "{{ import('os') }}",
    "{{ open('/etc/passwd').read() }}",
    "{{ var('x') }}",
    "{{ 1 / 0 }}",
    "{{ 'x' + 1 }}",
    "{% for i in range(10 ** 9) %}x{% endfor %}",
    "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
)
YAML = (
    "!!python/object/apply:os.system ['touch {marker}']",
    "!!python/object/new:os.system ['touch {marker}']",
    "!!python/name:os.system",
    "!!python/module:os",
    "!!python/object/apply:subprocess.check_output [['touch', '{marker}']]",
)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "marker"


def project(tmp_path: Path, warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project whose profile has this text as its warehouse."""
    (tmp_path / "dbt_project.yml").write_text("name: shop\nprofile: shop\n")
    profile = f"shop:\n  target: dev\n  outputs:\n    dev:\n      type: silt\n      warehouse: {warehouse}\n"
    (tmp_path / "profiles.yml").write_text(profile)
    monkeypatch.chdir(tmp_path)
    for name in ("PROJECT_DIR", "PROFILES_DIR", "PROFILE", "TARGET", "TARGET_PATH"):
        monkeypatch.delenv(f"DBT_{name}", raising=False)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_profile_template_cannot_reach_python_objects(
    template: str, marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path, json.dumps(template.replace("{marker}", str(marker))), monkeypatch)
    assert main(["runs"]) == 2
    said = capsys.readouterr()
    assert not marker.exists()
    assert "root:" not in said.out + said.err and "<function" not in said.out + said.err


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_forbidden_template_is_refused_and_renders_nothing(template: str) -> None:
    with pytest.raises(ValueError):
        jinja.rendered(template, {"env_var": lambda name: name})


@pytest.mark.parametrize("value", YAML)
@pytest.mark.parametrize("file", ["profiles.yml", "dbt_project.yml"])
def test_yaml_tags_create_no_python_object(
    value: str,
    file: str,
    marker: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project(tmp_path, "house", monkeypatch)
    with (tmp_path / file).open("a") as written:
        written.write(f"other: {value.replace('{marker}', str(marker))}\n")
    assert main(["runs"]) == 2
    assert not marker.exists()
    assert "cannot be read" in capsys.readouterr().err

"""The token of the endpoint: only its user can read it, and it is never on a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.endpoint.core.tokens import VARIABLE, Token
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError

LONG = "a-token-of-enough-characters"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "cache"


def test_a_token_is_created_once_in_a_file_that_only_the_user_can_read(cache: Path) -> None:
    first = Token.find()
    path = Path(first.place)
    assert path.is_relative_to(cache) and path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert len(first.value) > 40 and Token.find() == first
    assert first.value not in repr(first)


def test_only_the_whole_token_matches() -> None:
    token = Token(LONG, "the test")
    assert token.matches(LONG)
    assert not any(token.matches(each) for each in (None, "", LONG[:-1], f"{LONG}x", LONG.upper(), "é"))


def test_the_token_may_come_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(f"{LONG}\n")
    file.chmod(0o600)
    assert Token.find(str(file)).value == LONG
    monkeypatch.setenv(VARIABLE, f"{LONG}-2")
    assert Token.find().value == f"{LONG}-2"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text(LONG)
    file.chmod(mode)
    with pytest.raises(InvalidSettingError, match="only you can"):
        Token.find(str(file))


def test_a_missing_file_a_link_and_a_short_token_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidSettingError, match=r"the file .* does not exist"):
        Token.find(str(tmp_path / "missing"))
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    with pytest.raises(InvalidSettingError, match="only you can"):
        Token.find(str(tmp_path / "link"))
    monkeypatch.setenv(VARIABLE, "short")
    with pytest.raises(InvalidSettingError, match="needs 16"):
        Token.find()

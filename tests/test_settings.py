from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.errors import TwogateError
from evals.settings import SECRET_VARIABLES, Settings, clean, withhold_secrets


@pytest.mark.parametrize(
    "value",
    ["sk-1\n", " sk-1 ", '"sk-1"', "'sk-1'\r\n", "\ufeffsk-1", "sk-1\x00", "\u200bsk-1", '"sk-1\n"', "\tsk-1"],
)
def test_what_ci_adds_to_a_secret_is_taken_off(value: str) -> None:
    assert clean(value) == "sk-1"


@given(st.text())
def test_cleaning_twice_is_cleaning_once_but_for_nested_quotes(value: str) -> None:
    once = clean(value)
    assert once == once.strip()
    if not (len(once) >= 2 and once[0] == once[-1] and once[0] in "\"'`"):
        assert clean(once) == once


def test_the_real_environment_wins_over_the_file_and_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=from-file\nOPENROUTER_API_KEY='quoted'\nA=1\n")
    settings = Settings.load(tmp_path, {"A": "2", "ANTHROPIC_API_KEY": " \n"})
    assert settings.get("A") == "2"
    assert settings.get("ANTHROPIC_API_KEY") == "from-file"
    assert settings.get("OPENROUTER_API_KEY") == "quoted"


def test_a_file_with_a_byte_order_mark_is_read_and_one_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xef\xbb\xbfA=1\r\n")
    assert Settings.load(tmp_path, {}).get("A") == "1"
    (tmp_path / ".env").write_bytes(b"A=\xff\xfe")
    with pytest.raises(TwogateError, match=r"\.env: cannot be read"):
        Settings.load(tmp_path, {})


def langfuse(**variables: str) -> Settings:
    return Settings.load(Path("/nowhere"), variables)


def test_langfuse_all_none_or_the_missing_ones_named() -> None:
    assert langfuse().langfuse() is None
    keys = langfuse(
        LANGFUSE_PUBLIC_KEY="pk", LANGFUSE_SECRET_KEY="sk\n", LANGFUSE_BASE_URL="https://example.com/"
    ).langfuse()
    assert keys is not None
    assert (keys.public_key, keys.secret_key, keys.base_url) == ("pk", "sk", "https://example.com")
    assert "sk" not in repr(keys).replace("pk", "")
    with pytest.raises(
        TwogateError, match="LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL not set, while LANGFUSE_PUBLIC_KEY is"
    ):
        langfuse(LANGFUSE_PUBLIC_KEY="pk").langfuse()
    with pytest.raises(TwogateError, match="must start with http"):
        langfuse(LANGFUSE_PUBLIC_KEY="p", LANGFUSE_SECRET_KEY="s", LANGFUSE_BASE_URL="cloud").langfuse()


def test_the_older_name_of_the_base_url_is_taken() -> None:
    keys = langfuse(LANGFUSE_PUBLIC_KEY="p", LANGFUSE_SECRET_KEY="s", LANGFUSE_HOST="http://h").langfuse()
    assert keys is not None
    assert keys.base_url == "http://h"


@pytest.mark.parametrize(("value", "ci"), [("true", True), ("1", True), ("false", False), ("", False), ("0", False)])
def test_ci(value: str, ci: bool) -> None:
    assert Settings.load(Path("/nowhere"), {"CI": value}).ci is ci


def test_secrets_leave_the_environment_and_do_not_show() -> None:
    environ = {name: f"value-of-{name}" for name in SECRET_VARIABLES} | {
        "PATH": "/bin",
        "LANGFUSE_BASE_URL": "http://x",
    }
    settings = Settings.load(Path("/nowhere"), environ)
    withhold_secrets(environ)
    assert environ == {"PATH": "/bin"}
    assert len(settings.secrets) == len(SECRET_VARIABLES)
    assert not any(secret in repr(settings) for secret in settings.secrets)


def test_every_variable_is_named_in_the_example_file() -> None:
    from evals import settings

    example = (Path(settings.__file__).parent.parent / ".env.example").read_text(encoding="utf-8")
    for name in (
        *SECRET_VARIABLES,
        *settings.LANGFUSE_VARIABLES,
        settings.ANTHROPIC_BASE_URL,
        settings.OPENROUTER_BASE_URL,
    ):
        assert f"{name}=" in example, name

from __future__ import annotations

from pathlib import Path

import pytest

from evals.judges.choice import JudgeChoice, ScriptedUrls, make_judge
from evals.settings import Settings


def settings(**variables: str) -> Settings:
    return Settings(root=Path(), variables=variables)


def problems(choice: JudgeChoice, **variables: str) -> list[str]:
    return choice.problems(settings(**variables))


def test_defaults() -> None:
    assert JudgeChoice().names == ("deepseek/deepseek-v4-flash",)
    assert JudgeChoice(claude=True).names == ("claude-sonnet-5",)
    assert JudgeChoice(models=("a", "b"), claude=True).names == ("a", "b")


def test_a_missing_key_names_the_alternatives() -> None:
    [line] = problems(JudgeChoice())
    assert "OPENROUTER_API_KEY is not set" in line
    assert "--claude-judge" in line
    assert "--subscription" in line
    [line] = problems(JudgeChoice(claude=True), OPENROUTER_API_KEY="k")
    assert "ANTHROPIC_API_KEY is not set" in line
    assert "leave out --claude-judge" in line


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"])
def test_any_credential_of_claude_will_do(name: str) -> None:
    assert problems(JudgeChoice(claude=True), **{name: "k"}) == []


def test_no_key_is_needed_with_a_login_or_a_script() -> None:
    assert problems(JudgeChoice(claude=True, subscription=True)) == []
    assert JudgeChoice().problems(settings(), scripted=True) == []


def test_every_problem_is_told_at_once() -> None:
    found = problems(JudgeChoice(models=("a", "a", " ")), OPENROUTER_BASE_URL="openrouter.ai")
    assert [line.split(":")[0] for line in found[:2]] == ["--judge-model a", "--judge-model"]
    assert len(found) == 4
    assert "must start with http:// or https://" in found[-1]


def test_a_claude_judge_is_said_to_be_lenient() -> None:
    assert "may be lenient" in JudgeChoice(claude=True).warnings[0]
    assert JudgeChoice().warnings == ()


def test_each_model_is_a_vote() -> None:
    urls = ScriptedUrls("http://127.0.0.1:1", "http://127.0.0.1:1/v1")
    for choice in (JudgeChoice(models=("a", "b", "c")), JudgeChoice(models=("a", "b", "c"), claude=True)):
        assert make_judge(choice, settings(), scripted=urls).models == ("a", "b", "c")


def test_no_key_shows_in_a_judge() -> None:
    for choice in (JudgeChoice(), JudgeChoice(claude=True)):
        judge = make_judge(choice, settings(OPENROUTER_API_KEY="secret-1", ANTHROPIC_API_KEY="secret-2"))
        assert "secret" not in repr(judge)

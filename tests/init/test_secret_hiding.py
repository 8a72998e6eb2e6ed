"""No credential gets from a .mcp.json into the file that is committed; what says nothing stays readable."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.errors import TwogateError
from evals.init.config import Config, config_from_mcp_file, config_from_start
from evals.init.environment import entries_for
from evals.init.hiding import Hiding, Variables
from evals.secrecy import is_harmless, is_secret_name, looks_secret
from evals.target import load_target


def hidden(description: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    hiding = Hiding("srv", Variables())
    return hiding.description(description), hiding.notes


def args(*given: str) -> list[str]:
    taken: list[str] = hidden({"args": list(given)})[0]["args"]
    return taken


def config(tmp_path: Path, **servers: Any) -> Config:
    path = tmp_path / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return config_from_mcp_file(path)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (
            ["-y", "@modelcontextprotocol/server-postgres", "postgresql://admin:hunter2secret@db/prod"],
            ["-y", "@modelcontextprotocol/server-postgres", "postgresql://${SRV_USER_INFO}@db/prod"],
        ),
        (
            ["mcp-remote", "https://mcp.example.com/mcp", "--header", "Authorization: Bearer sk-live-REALTOKEN1"],
            ["mcp-remote", "https://mcp.example.com/mcp", "--header", "Authorization: Bearer ${SRV_TOKEN}"],
        ),
        (["-H", "X-API-Key: k123"], ["-H", "X-API-Key: ${SRV_X_API_KEY}"]),
        (["-H", "X-Any:hunter2"], ["-H", "X-Any:${SRV_X_ANY}"]),
        (["-HX-Any: hunter2"], ["-HX-Any: ${SRV_X_ANY}"]),
        (["--header=X-Any: hunter2"], ["--header=X-Any: ${SRV_X_ANY}"]),
        (["-H", "Accept: application/json, text/event-stream"], ["-H", "Accept: application/json, text/event-stream"]),
        (["run", "-e", "FOO=hunter2", "-e", "DEBUG=true"], ["run", "-e", "FOO=${FOO}", "-e", "DEBUG=true"]),
        (["-eFOO=hunter2", "--env=BAR=hunter3"], ["-eFOO=${FOO}", "--env=BAR=${BAR}"]),
        (["run", "-e", "GITHUB_TOKEN", "ghcr.io/o/image:1.2"], ["run", "-e", "GITHUB_TOKEN", "ghcr.io/o/image:1.2"]),
        (["--db-pwd", "x", "--verbose"], ["--db-pwd", "${SRV_DB_PWD}", "--verbose"]),
        (["--no-auth", "dist/index.js"], ["--no-auth", "dist/index.js"]),
        (["-u", "jo:pw"], ["-u", "${SRV_U}"]),
        (["-c", "API_KEY=abc npx server --port 3000"], ["-c", "${SRV_C}"]),
        (["-c", "npx server --header 'X-Any: hunter2'"], ["-c", "${SRV_C}"]),
        (["-c", "npm run build && node dist/index.js"], ["-c", "npm run build && node dist/index.js"]),
        (["--config", '{"a": {"tok": "zzz"}}'], ["--config", "${SRV_CONFIG}"]),
        (["--config", '{"debug": true, "level": "info"}'], ["--config", '{"debug": true, "level": "info"}']),
        (["postgres://u:p@ss/w@host/d"], ["postgres://${SRV_USER_INFO}@host/d"]),
        (["u:pw@host:5432/db"], ["${SRV_USER_INFO}@host:5432/db"]),
        (["Server=db;Password=hunter2;App=x"], ["Server=db;Password=${SRV_PASSWORD};App=x"]),
        (["https://h.example.com/?apiKey=abc&tools=all"], ["https://h.example.com/?apiKey=${SRV_APIKEY}&tools=all"]),
        (["https://h.example.com/s/NzQ4YzE5ZjUtM2Q0/mcp"], ["https://h.example.com/s/${SRV_ARG}/mcp"]),
        (["aGVsbG8gd29ybGQgdGhpcw==/x+y"], ["${SRV_ARG}"]),
        (["first", "ghp_abcdefghij", "AKIAIOSFODNN7EXAMPLE"], ["first", "${SRV_ARG}", "${SRV_ARG_2}"]),
        (["--db", "${URL:-postgres://u:p@h/d}"], ["--db", "${URL}"]),
        (["--password=${PW:-hunter2}", "--pwd", "${X:-1234}"], ["--password=${PW}", "--pwd", "${X}"]),
        (["postgres://${U:-admin}:${P:-hunter2}@h/d"], ["postgres://${U}:${P}@h/d"]),
        (["postgres://${U}:${P:-1234}@h/d"], ["postgres://${SRV_USER_INFO}@h/d"]),
        (["https://h.example.com/?key=${X:-1234}"], ["https://h.example.com/?key=${SRV_KEY}"]),
        (["Bearer ${T:-hunter2}", "Bearer", "hunter3"], ["Bearer ${T}", "Bearer", "${SRV_ARG}"]),
        (
            ["X-Api-Key:hunter2", "Authorization:", "Basic", "am86cHc="],
            ["X-Api-Key:${SRV_X_API_KEY}", "Authorization:", "${SRV_ARG}", "${SRV_ARG_2}"],
        ),
        (["a\u00a0b"], ["a\u00a0b"]),
    ],
)
def test_arguments(given: list[str], taken: list[str]) -> None:
    assert args(*given) == taken


@pytest.mark.parametrize(
    "kept",
    [
        "git+https://github.com/owner/name@main",
        "git+ssh://git@github.com/owner/name",
        "https://registry.example.com:8080/@scope/package",
        "npm:package@1.2.3",
        "owner/image:tag@sha256:" + "ab1" * 21,
        "postgres://${DB_USER}:${DB_PASSWORD}@host/d",
        "Authorization: Bearer ${TOKEN}",
        "${PORT:-3000}",
        "mcp-server-everything",
        "getInvoicesForCustomerById",
        "/Users/me/My Projects/a b/index.js",
        "Answer in English, and count: 5",
        "--seed=42",
    ],
)
def test_arguments_that_say_nothing_stay(kept: str) -> None:
    assert args(kept) == [kept]


def test_a_key_in_the_argument_before_does_not_get_into_a_variables_name() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIabc"
    assert args(key, "x=y") == ["${SRV_ARG}", "x=y"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_PAT", "ghp_abcdef"),
        ("GH_PAT", "x"),
        ("githubPat", "x"),
        ("DATABASE_URL", "postgres://u:hunter3secret@h/d"),
        ("STRIPE_SK", "sk_live_1"),
        ("SENTRY_DSN", "https://abc123secret@o1.ingest.example.com/1"),
        ("HOOK", "https://hooks.example.com/services/T0/B0/abc"),
        ("ANYTHING", "hunter2"),
        ("PASSWORD", "1234"),
        ("PASSWORD", "production"),
        ("SECRET_FILE", "/run/secrets/x"),
        ("ACCOUNT", "123456789"),
    ],
)
def test_environment_values_are_hidden_unless_harmless(name: str, value: str) -> None:
    taken, notes = hidden({"env": {name: value}})
    assert taken == {"env": {name: f"${{{name}}}"}}
    assert notes == [f"env.{name} is taken from ${{{name}}}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NODE_ENV", "production"),
        ("LOG_LEVEL", "DEBUG"),
        ("USE_AUTH", "false"),
        ("PORT", "3000"),
        ("TIMEOUT", "30s"),
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("CONFIG", "./config/server.toml"),
        ("TZ", "Europe/Berlin"),
        ("LANG", "en_US.UTF-8"),
        ("API_URL", "https://api.example.com/v1"),
        ("LOCAL", "http://localhost:3000/mcp"),
        ("EMPTY", ""),
        ("API_TOKEN", "${API_TOKEN}"),
        ("AUTH_HEADER", "Bearer ${TOKEN}"),
        ("OTHER_PORT", "${PORT:-3000}"),
    ],
)
def test_harmless_environment_values_stay(name: str, value: str) -> None:
    assert hidden({"env": {name: value}}) == ({"env": {name: value}}, [])


def test_headers() -> None:
    taken, notes = hidden(
        {
            "headers": {
                "X-Api": "REALTOKEN5",
                "Accept": "*/*",
                "MCP-Protocol-Version": "2025-06-18",
                "Authorization": "hunter2 and more",
                "Proxy-Authorization": "Basic am86cHc=",
            }
        }
    )
    assert taken["headers"] == {
        "X-Api": "${SRV_X_API}",
        "Accept": "*/*",
        "MCP-Protocol-Version": "2025-06-18",
        "Authorization": "${SRV_TOKEN}",
        "Proxy-Authorization": "Basic ${SRV_PROXY_AUTHORIZATION}",
    }
    assert len(notes) == 3


def test_defaults_of_variables_are_judged_like_values() -> None:
    taken, notes = hidden({"env": {"A": "${A:-hunter2}", "B": "${B:-info}"}})
    assert taken["env"] == {"A": "${A}", "B": "${B:-info}"}
    assert notes == ["env.A: the default of ${A} is left out"]


def test_no_variable_stands_for_two_values(tmp_path: Path) -> None:
    made = config(
        tmp_path,
        one={"command": "a", "env": {"API_TOKEN": "first", "SHARED": "same"}},
        two={"command": "b", "env": {"API_TOKEN": "second", "SHARED": "same"}},
        three={"command": "c", "env": {"API_TOKEN": "third-${OTHER}", "X": "fourth"}},
        four={"command": "d", "args": ["${X}"]},
    )
    servers = tomllib.loads(made.text)["servers"]
    assert [server.get("env") for server in servers.values()] == [
        {"API_TOKEN": "${API_TOKEN}", "SHARED": "${SHARED}"},
        {"API_TOKEN": "${TWO_API_TOKEN}", "SHARED": "${SHARED}"},
        {"API_TOKEN": "${THREE_API_TOKEN}", "X": "${THREE_X}"},
        None,
    ]


def test_a_variables_name_can_be_one(tmp_path: Path) -> None:
    made = config(tmp_path, **{"21st-dev": {"url": "https://x.example.com", "headers": {"x-api-key": "k"}}})
    assert made.variables == ("_21ST_DEV_X_API_KEY",)
    (tmp_path / "twogate.toml").write_text(made.text, encoding="utf-8")
    (server,) = load_target(tmp_path, {"_21ST_DEV_X_API_KEY": "the value"}).servers
    assert server.launch().headers == (("x-api-key", "the value"),)


def test_variables_of_notes_and_environment_file_follow(tmp_path: Path) -> None:
    made = config(tmp_path, db={"command": "npx", "args": ["x", "postgres://u:p@h/d"], "env": {"REGION": "mars"}})
    assert made.notes == (
        "twogate.toml: db: env.REGION is taken from ${REGION}",
        "twogate.toml: db: args[1] is taken from ${DB_USER_INFO}",
    )
    assert set(made.variables) == {"REGION", "DB_USER_INFO"}
    assert {entry.name for entry in entries_for("", made.variables)} == {"REGION", "DB_USER_INFO"}


def test_a_start_line_is_read_in_the_same_way() -> None:
    made = config_from_start(
        "x", "npx mcp-remote https://h.example.com --header 'Authorization: Bearer sk-live-TOKEN1'"
    )
    assert "TOKEN1" not in made.text
    assert made.variables == ("X_TOKEN",)
    made = config_from_start("x", "https://u:hunter2@h.example.com/mcp")
    assert "hunter2" not in made.text
    with pytest.raises(TwogateError) as caught:
        config_from_start("x", "npx --token abc 'open")
    assert "abc" not in str(caught.value.lines)


@given(
    st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=32, max_size=64),
    st.sampled_from(
        [
            "{}",
            "--flag={}",
            "NAME={}",
            "https://h.example.com/{}/x",
            "https://h.example.com/?a={}",
            "run --flag {} now",
            '{{"a": "{}"}}',
            "pre-{}",
            "${{V:-{}}}",
            "${{V}}{}",
        ]
    ),
)
def test_long_random_texts_are_hidden_wherever_they_stand(secret: str, form: str) -> None:
    taken, notes = hidden(
        {"command": form.format(secret), "args": [form.format(secret)], "env": {"A": form.format(secret)}}
    )
    assert secret not in json.dumps(taken)
    assert secret not in json.dumps(notes)
    assert len(notes) == 3


def test_names_and_forms() -> None:
    assert all(map(is_secret_name, ["API_KEY", "--db-pwd", "GH_PAT", "sslPass", "x-session-id", "code"]))
    assert not any(map(is_secret_name, ["PATH", "--path", "PATTERN", "COMPASS", "PINNED", "--no-auth", "NODE_ENV"]))
    assert all(
        map(looks_secret, ["xoxb-1", "glpat-abcd", "eyJhbGciOi", "a" * 32, "4f9c2d81-aaaa-4bbb-8ccc-0123456789ab"])
    )
    assert not any(map(looks_secret, ["disk-usage", "task-force", "sk-SK", "server-2024-11-05", "v1.2.3-alpha.1"]))
    assert not is_harmless("letmein")

"""What is kept out of reports, journals and lines: the secrets of a server's options, in all the forms they take."""

from __future__ import annotations

import base64
import json
import shlex
import sys
from pathlib import Path

import pytest

from evals.errors import TwogateError
from evals.qa.server import ServerOptions, find_servers, list_servers_tools, parse_pair, shown_command
from evals.redact import Redactor
from evals.secret_parts import (
    address_secrets,
    argument_secrets,
    environment_secrets,
    shown_arguments,
    value_secrets,
    without_cut_secret,
)

TOKEN = "sk-live-4eC39HqLyjWDarjtT1"


@pytest.mark.parametrize(
    ("line", "secrets", "shown"),
    [
        (f"--api-key={TOKEN}", [TOKEN], "--api-key=…"),
        (f"--api-key {TOKEN}", [TOKEN], "--api-key …"),
        ("--db-password hunter2", ["hunter2"], "--db-password …"),
        ("-y some-server --token=hunter2 --port 1", ["hunter2"], "-y some-server --token=… --port 1"),
        ("env API_KEY=hunter2 python", ["hunter2"], "env API_KEY=… python"),
        ("-eGITHUB_PAT=hunter2", ["hunter2"], "-eGITHUB_PAT=…"),
        ("--header 'Authorization: Bearer hunter2'", ["Bearer hunter2", "hunter2"], "--header 'Authorization: …'"),
        ("postgres://u:hunter2@h/d", ["hunter2"], "postgres://u:…@h/d"),
        ("--url=https://h/mcp?api_key=hunter2&x=1", ["hunter2"], "--url=https://h/mcp?api_key=…&x=1"),
        (f'--config \'{{"token": "{TOKEN}"}}\'', [TOKEN], '--config \'{"token": "…"}\''),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", ["ghp_16C7e42F292c6912E7710c838347Ae178B4a"], "…"),
        # settings that only sound like it
        ("--max-tokens 100000 --author ann --no-auth", [], "--max-tokens 100000 --author ann --no-auth"),
        ("server.py --auth=false -m module --port 8080", [], "server.py --auth=false -m module --port 8080"),
        (f"--key-file={sys.executable}", [], f"--key-file={sys.executable}"),
    ],
)
def test_secrets_of_arguments(line: str, secrets: list[str], shown: str) -> None:
    words = shlex.split(line)
    assert set(argument_secrets(words)) == set(secrets)
    assert shlex.split(shown) == list(shown_arguments(words))


def test_secrets_of_addresses_and_values() -> None:
    assert {"hunter%402", "hunter@2", "ann:hunter%402", "abc"} <= set(
        address_secrets("https://ann:hunter%402@h/mcp?key=abc")
    )
    assert address_secrets("https://h/mcp") == []
    basic = base64.b64encode(b"ann:hunter2").decode()
    assert set(value_secrets([f"Basic {basic}", "postgres://u:p4ss@h/d"])) == {
        f"Basic {basic}", basic, basic.rstrip("="), "ann:hunter2", "hunter2", "postgres://u:p4ss@h/d", "p4ss"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "inner"),
    [
        (f'{{"Authorization": "Bearer {TOKEN}", "Notion-Version": "2022-06-28"}}', {f"Bearer {TOKEN}", TOKEN}),
        ('{"servers": [{"apiKey": "hunter2", "name": "one"}]}', {"hunter2"}),
        ("DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=hunter2==;Suffix=net", {"hunter2=="}),
        ("Server=tcp:db.example.com,1433;User ID=me;Password=hunter2 and 3;Encrypt=True", {"hunter2 and 3"}),
        ("host=x password=hunter2 user=y", {"hunter2"}),
        ("me:hunter2@tcp(db:3306)/things", {"hunter2"}),
        ("Authorization: token hunter2x, X-Org: acme", {"token hunter2x", "hunter2x"}),
        ("host: x\ntoken: hunter2\n", {"hunter2"}),
        ('{"ConnectionStrings": {"Default": "Server=a;Password=hunter2;x=1"}}', {"hunter2"}),
        ('"Server=a;Password=hunter2;"', {"hunter2"}),
        ("Server=a;Password='hunter2;three';", {"hunter2;three"}),
        ('{"tokens": {"github": "hunter2"}}', {"hunter2"}),
        ('[{"name": "API_KEY", "value": "hunter2"}]', {"hunter2"}),
        ('{"pin": 12345678}', {"12345678"}),
        ('["--api-key", "hunter2"]', {"hunter2"}),
        ('{"headers": ["Authorization: Bearer hunter2"]}', {"Bearer hunter2", "hunter2"}),
        ("{'Authorization': 'Bearer hunter2'}", {"Bearer hunter2", "hunter2"}),
        ("X-Api-Key:hunter2", {"hunter2"}),
        ('{"Authorization": "Basic YW5uOmh1bnRlcjI="}', {"ann:hunter2", "hunter2"}),
        ("postgres://ann:hunter%402@h/things", {"hunter%402", "hunter@2"}),
        ("acme,beta", set()),
        ("mail me at 5: ok@example", set()),
    ],
)
def test_a_credential_inside_a_value_may_come_back_alone(value: str, inner: set[str]) -> None:
    """A server's error has the token in it, not the variable it got it by."""
    found = set(value_secrets([value]))
    assert value in found
    assert inner <= found
    assert not {"Notion-Version", '"Notion-Version":', "2022-06-28", "one", "acme", "https"} & found
    assert inner <= set(argument_secrets(["--dsn", value])) or not inner


@pytest.mark.parametrize(
    "value",
    [
        "auth: refuse invoices without a customer",
        "session: weather",
        "KEY=customer",
        "--max-old-space-size=4096 --tokens=customers",
        "-Dkey=project-name",
        '{"license": {"key": "apache-2.0"}, "keys_url": "https://api.example.com/keys", "path": "a"}',
        "auth: enabled-by-default, session: weather",
        "service.name=things,session=default-session",
        "mailto:support@acme.example",
        "ghcr.io/acme/server:latest@sha256:0123",
        '{"url":"http://h","mail":"support@x.example"}',
    ],
)
def test_what_another_variable_tells_is_no_secret(value: str) -> None:
    """A commit's message is in every CI job's environment; masked, its words would be missing from every text."""
    assert environment_secrets({"CI_COMMIT_MESSAGE": value}) == []


@pytest.mark.parametrize(
    ("value", "inner"),
    [
        (f'{{"Authorization": "Bearer {TOKEN}", "V": "2022-06-28"}}', TOKEN),
        ("Server=a;Password=hunter2x;", "hunter2x"),
        ("postgres://ann:hunter2x@h/things", "hunter2x"),
    ],
)
def test_a_credential_that_a_server_inherits_inside_a_value_is_known(value: str, inner: str) -> None:
    assert inner in environment_secrets({"THINGS": value})


@pytest.mark.parametrize("secret", ["caf\udce9-latin", "\ud800abcdefg"])
def test_a_secret_that_is_no_text_is_taken_out_all_the_same(secret: str) -> None:
    assert Redactor([secret]).text(f"a {secret} b") == "a [secret] b"


def test_a_private_key_is_kept_whole_and_its_words_are_words() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----"
    account = json.dumps({"type": "service_account", "private_key": key, "project_id": "things"})
    found = value_secrets([account])
    assert {account, key} <= set(found)
    assert not {"PRIVATE", "KEY-----", "things"} & set(found)


@pytest.mark.parametrize(
    "shape",
    ["a", "a-", "a.", "a:", "a: ", " a:b", "a= ", "x:y@", "://", "\n", ";", '"a":', "token=", "Bearer ", "-----BEGIN "],
)
def test_a_long_value_of_any_shape_is_looked_through(shape: str) -> None:
    """Steps that grow with the square of its length would take hours."""
    value = shape * (200_000 // len(shape)) + "x"
    assert value in value_secrets([value])
    assert argument_secrets(["--token", value])
    assert environment_secrets({"API_TOKEN": f"{value}1"})
    assert isinstance(environment_secrets({"THINGS": value}), list)


def options(**fields: object) -> ServerOptions:
    return ServerOptions(**{"command": sys.executable, "args": ("server.py", f"--api-key={TOKEN}")} | fields)  # type: ignore[arg-type]


def test_the_target_is_described_without_them_and_they_are_known() -> None:
    servers = find_servers(options(env=(("PLAIN", "value-7"), ("N", 'a\nb"c'))), Path(), {}, None)
    assert servers.description == f"{sys.executable} server.py --api-key=… (stdio)"
    assert {TOKEN, "value-7", 'a\nb"c', 'a\\nb\\"c', 'a b"c'} <= set(servers.secrets)
    assert TOKEN in servers.launches[0].args[1], "the server itself gets it"
    assert TOKEN not in repr(servers)


def test_what_a_server_inherits_is_kept_too() -> None:
    environment = {
        "GITHUB_TOKEN": "hunter2-a",
        "DB_URL": "postgres://u:hunter2-b@h/d",
        "DESKTOP_SESSION": "gnome",
        "SSH_KEY": sys.executable,
        "HOME": "/home/ann",
    }
    found = find_servers(options(), Path(), environment, None).secrets
    assert "hunter2-a" in found
    assert "hunter2-b" in found
    assert not {"gnome", sys.executable, "/home/ann"} & set(found)


def test_a_command_line_for_the_record() -> None:
    line = (
        f"qa q.xml --concurrency 1 -c python -a=--api-key={TOKEN} -a -- --pin 1234 -e N=1 GITHUB_PAT=ghp -e=A=b "
        "-H 'X-Team:  blue' -u https://u:p@h/mcp?key=k"
    )
    given = ServerOptions(
        args=(f"--api-key={TOKEN}", "--pin", "1234"),
        env=(("N", "1"), ("GITHUB_PAT", "ghp"), ("A", "b")),
        headers=(("X-Team", "blue"),),
        url="https://u:p@h/mcp?key=k",
    )
    assert shown_command(shlex.split(line), given) == tuple(
        shlex.split(
            "qa q.xml --concurrency 1 -c python -a=--api-key=… -a -- --pin … -e N=… GITHUB_PAT=… -e=A=… "
            "-H 'X-Team:  …' -u https://h/mcp…"
        )
    )


@pytest.mark.parametrize("padding", [0, 280, 283, 290])
async def test_a_server_that_tells_its_secrets_as_it_fails_does_not_tell_them_here(padding: int) -> None:
    code = f"import sys; sys.exit(f'bad login: {{sys.argv[1]}} and {{sys.argv[2]}}' + 'x' * {padding})"
    servers = find_servers(options(args=("-c", code, f"--api-key={TOKEN}", "--token=correct horse")), Path(), {}, None)
    with pytest.raises(TwogateError) as caught:
        await list_servers_tools(servers, Redactor(servers.secrets))
    (line,) = caught.value.lines
    assert "does not connect" in line
    assert not any(TOKEN[-length:] in line for length in range(6, len(TOKEN)))
    assert "horse" not in line


def test_the_end_of_a_secret_is_one_too() -> None:
    assert without_cut_secret("nter2pass and more", ["hunter2pass"]) == "… and more"
    assert without_cut_secret("no secret", ["hunter2pass"]) == "no secret"


@pytest.mark.parametrize("text", [TOKEN, f"Bearer {TOKEN}", "a" * 40])
def test_a_value_whose_name_was_forgotten_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no (variable|header)") as caught:
        parse_pair(text, "variable")
    assert text not in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_an_address_that_is_none_is_told_without_its_password() -> None:
    (line,) = ServerOptions(url="ftp://ann:hunter2@h/mcp?key=k").mistakes(None)
    assert line.startswith("--url 'ftp://h/mcp' must start with http://")

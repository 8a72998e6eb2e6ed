from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from evals.errors import TwogateError
from evals.target import Target, load_target
from evals.tool_listing import list_tools


def load(folder: Path, text: str, name: str = "twogate.toml", **variables: str) -> Target:
    (folder / name).write_text(text, encoding="utf-8")
    return load_target(folder, variables)


def problems(folder: Path, text: str, name: str = "twogate.toml") -> list[str]:
    with pytest.raises(TwogateError) as caught:
        load(folder, text, name)
    return caught.value.lines


def test_a_stdio_server_starts_in_the_files_folder_with_its_variables(tmp_path: Path) -> None:
    target = load(
        tmp_path,
        """
[servers.one]
command = "${TWOGATE_PYTHON}"
args = ["-m", "server", "--level=${LEVEL:-info}"]
env = { TOKEN = "${TOKEN}" }
tools_arg = "--tools={tools}"
tool_timeout = 5

[servers.two]
command = "npx"
auxiliary = true
""",
        TOKEN="secret-token",
    )
    assert [server.name for server in target.under_test] == ["one"]
    launch = target.servers[0].launch(["docs", "runs"])
    assert launch.args[3:] == (str(tmp_path), sys.executable, "-m", "server", "--level=info", "--tools=docs,runs")
    assert dict(launch.env) == {"TOKEN": "secret-token"}
    assert launch.tool_timeout == 5
    assert target.secret_values() == ["secret-token"]
    # neither what is shown nor what a debugger prints holds the secret
    assert launch.label == "${TWOGATE_PYTHON} -m server --level=${LEVEL:-info}"
    assert "secret-token" not in repr(launch) + repr(target)
    # the same launch is the same server; other families are another one
    assert target.servers[0].launch(["docs", "runs"]) == launch
    assert target.servers[0].launch() != launch
    assert target.servers[1].launch(["docs"]) == target.servers[1].launch()


def test_secrets_written_out_or_given_as_defaults_are_known_too(tmp_path: Path) -> None:
    target = load(
        tmp_path,
        """
[servers.web]
url = "https://example.com/mcp"
headers = { Authorization = "Bearer tok-written-out", "X-Api-Key" = "${KEY:-tok-default}", Accept = "text/plain" }
""",
    )
    assert target.secret_values() == ["Bearer tok-written-out", "tok-written-out", "tok-default"]


def test_a_clients_own_keys_of_a_mcp_json_are_passed_over(tmp_path: Path) -> None:
    described = {
        "one": {"command": "x", "timeout": 30000, "alwaysLoad": True, "autoApprove": ["a"], "disabled": False},
        "two": {"command": "y", "disabled": True, "unheard-of": 1},
    }
    target = load(tmp_path, json.dumps({"mcpServers": described}), ".mcp.json")
    assert [(server.name, server.config.tool_timeout) for server in target.servers] == [("one", 30.0)]
    odd = json.dumps({"mcpServers": {"one": {"command": "x", "comand": "y"}}})
    assert "mcpServers.one.comand: is not a known key" in problems(tmp_path, odd, ".mcp.json")[0]


def test_what_can_be_nothing_but_a_setting_is_no_secret(tmp_path: Path) -> None:
    """Masked, it would be missing from every text with that word in it, the judge's too."""
    env = '{ TABLE = "${TABLE}", LEVEL = "${LEVEL}", API_TOKEN = "${TOKEN}", PLAIN = "${PLAIN}" }'
    text = f'[servers.one]\ncommand = "x"\nenv = {env}\n'
    target = load(tmp_path, text, TABLE="invoices", LEVEL="debug", TOKEN="swordfish", PLAIN="hunter2hunter2")
    assert set(target.secret_values()) == {"swordfish", "hunter2hunter2"}


def test_secrets_in_arguments_and_addresses_are_known_and_not_shown(tmp_path: Path) -> None:
    target = load(
        tmp_path,
        """
[servers.one]
command = "npx"
args = ["--api-key=key-literal", "--token", "tok-literal", "--mode", "${MODE}", "--secret=${S_VALUE}", "${GH_PAT}",
    "--header", "X-Auth: Bearer hdr-literal"]
env = { DATABASE_URL = "postgres://bob:pw-in-a-url@db/x", GITHUB_PAT = "pat-literal" }

[servers.two]
url = "https://example.com/mcp?api_key=query-literal&page=second"
""",
        MODE="fast-mode",
        S_VALUE="sec-filled",
        GH_PAT="pat-filled",
    )
    assert set(target.secret_values()) == {
        "key-literal",
        "hdr-literal",
        "Bearer hdr-literal",
        "tok-literal",
        "sec-filled",
        "pat-filled",
        "pw-in-a-url",
        "pat-literal",
        "query-literal",
    }
    one, two = target.launches()
    assert one.label == (
        "npx --api-key=[secret] --token [secret] --mode ${MODE} --secret=${S_VALUE} ${GH_PAT} --header X-Auth: [secret]"
    )
    assert two.label == "https://example.com/mcp?api_key=[secret]&page=second"


async def test_what_a_server_says_before_it_ends_is_told_without_what_it_was_given(tmp_path: Path) -> None:
    script = "import os, sys; sys.exit('no login with ' + os.environ['DB'] + ' from ' + os.environ['HOME_DIR'])"
    (tmp_path / "bad.py").write_text(script)
    target = load(
        tmp_path,
        f"""
[servers.bad]
command = "${{TWOGATE_PYTHON}}"
args = ["bad.py"]
env = {{ DB = "db://u:hunter2@host", HOME_DIR = "{tmp_path}" }}
""",
    )
    with pytest.raises(TwogateError) as raised:
        await list_tools(target.servers[0].launch())
    assert f"it said: no login with [secret] from {tmp_path}" in raised.value.lines[0]


def test_an_item_s_tools_reach_a_url_as_a_parameter(tmp_path: Path) -> None:
    target = load(
        tmp_path,
        """
[servers.web]
url = "https://example.com/mcp?x=1"
headers = { Authorization = "Bearer ${TOKEN}" }
tools_arg = "tools={tools}"
""",
        TOKEN="secret-token",
    )
    launch = target.servers[0].launch(["a", "b"])
    assert (launch.transport, launch.url) == ("http", "https://example.com/mcp?x=1&tools=a,b")
    assert dict(launch.headers) == {"Authorization": "Bearer secret-token"}


def test_a_standard_mcp_json_is_taken(tmp_path: Path) -> None:
    servers = {
        "local": {"command": "server", "args": ["--x"], "env": {"A": "${HOME_OF_A:-here}"}},
        "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"K": "v"}},
        "old": {"type": "sse", "url": "https://example.com/sse"},
        "stream": {"type": "streamable-http", "url": "https://example.com/mcp"},
    }
    target = load(tmp_path, json.dumps({"mcpServers": servers}), ".mcp.json")
    assert [launch.transport for launch in target.launches()] == ["stdio", "http", "sse", "http"]
    assert dict(target.launches()[0].env) == {"A": "here"}


def test_twogate_toml_comes_before_mcp_json_and_a_named_file_before_both(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"json": {"command": "a"}}}')
    (tmp_path / "other.toml").write_text('[servers.other]\ncommand = "a"\n')
    assert load_target(tmp_path, {}).describe() == "json"
    assert load(tmp_path, '[servers.toml]\ncommand = "a"\n').describe() == "toml"
    assert load_target(tmp_path, {}, tmp_path / "other.toml").describe() == "other"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "describes no server"),
        ("[servers]", "describes no server"),
        ("[servers.a]", "needs either a command (stdio) or a url"),
        ('[servers.a]\ncommand = "x"\nurl = "http://y"', "not both"),
        ('[servers.a]\ncommand = "x"\nheaders = {A = "b"}', "headers"),
        ('[servers.a]\nurl = "http://y"\nargs = ["b"]', "args, env, cwd"),
        ('[servers.a]\nurl = "ftp://y"', "servers.a.url"),
        ('[servers.a]\ncomand = "x"', "servers.a.comand: is not a known key"),
        ('[servers.a]\ncommand = "x"\nargs = "y"', "servers.a.args"),
        ('[servers.a]\ncommand = "x"\nconnect_timeout = 0', "servers.a.connect_timeout"),
        ('[servers.a]\ncommand = "x"\ntools_arg = "--tools"', "servers.a.tools_arg"),
        ('[servers."a b"]\ncommand = "x"', "letters, digits, _ and - only"),
        ('[servers.a]\ncommand = "${NOT_SET}"', "the variable NOT_SET is not set"),
        ('[servers.a]\ncommand = "x"\nauxiliary = true', "every server is auxiliary"),
        ("[servers.a\n", "cannot be read"),
    ],
)
def test_each_mistake_of_the_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    (line,) = problems(tmp_path, text)
    assert line.startswith("twogate.toml: ")
    assert words in line


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    text = '[servers.a]\ncomand = "x"\n[servers.b]\ncommand = "${P} ${Q}"\n[servers."c d"]\ncommand = "x"\n'
    lines = problems(tmp_path, text)
    assert len(lines) == 4, lines  # an unknown key, two variables, a name


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(TwogateError, match=r"there is no twogate.toml and no .mcp.json"):
        load_target(tmp_path, {})
    with pytest.raises(TwogateError, match="there is no such file"):
        load_target(tmp_path, {}, tmp_path / "x.toml")
    assert problems(tmp_path, "[]", ".mcp.json") == [".mcp.json: must be an object with mcpServers"]


async def test_a_server_starts_here_with_the_environment_it_starts_with_in_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYSVC_PROFILE", "dev")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-not-for-it")
    text = (
        "import os, sys\n"
        "if not os.environ.get('MYSVC_PROFILE') or os.environ.get('ANTHROPIC_API_KEY'): sys.exit('wrong environment')\n"
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('one')\n"
        "server.add_tool(lambda: 'x', name='ping', description='x')\n"
        "server.run('stdio')\n"
    )
    (tmp_path / "server.py").write_text(text)
    target = load(tmp_path, '[servers.one]\ncommand = "${TWOGATE_PYTHON}"\nargs = ["server.py"]\n')
    assert [tool.name for tool in await list_tools(target.servers[0].launch())] == ["ping"]


async def test_an_address_that_refuses_the_token_says_so(tmp_path: Path) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        target = load(tmp_path, f'[servers.web]\nurl = "http://127.0.0.1:{port}/mcp"\n')
        with pytest.raises(TwogateError, match="HTTP 401 Unauthorized"):
            await list_tools(target.servers[0].launch())


async def test_a_servers_last_words_begin_with_a_whole_one(tmp_path: Path) -> None:
    """The half of a secret would not be known for one."""
    (tmp_path / "bad.py").write_text(f"import sys; sys.exit({'a' * 400 + ' ' + 'S' * 40 + ' ' + 'w ' * 139 + 'end'!r})")
    target = load(tmp_path, '[servers.bad]\ncommand = "${TWOGATE_PYTHON}"\nargs = ["bad.py"]\n')
    with pytest.raises(TwogateError) as raised:
        await list_tools(target.servers[0].launch())
    words = raised.value.lines[0].split("it said: ")[1]
    assert words.startswith("… w w w")
    assert words.endswith("w end")
    assert "S" not in words


NO_PROTOCOL = """
import json, sys
FINE = {"name": "fine", "inputSchema": {"type": "object"}}
TOOLS = [FINE, {"name": "bare", "inputSchema": {}}, {"inputSchema": FINE["inputSchema"]}]
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        about = {"serverInfo": {"name": "x", "version": "1"}, "capabilities": {"tools": {}}}
        answer = {"result": {"protocolVersion": asked["params"]["protocolVersion"], **about}}
    elif asked["method"] == "tools/list":
        answer = {"result": {"tools": TOOLS}}
    else:
        answer = {"error": {"code": -32601, "message": "unknown"}}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


async def test_a_list_of_tools_that_breaks_the_protocol_is_told_by_its_places(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(NO_PROTOCOL)
    target = load(tmp_path, '[servers.x]\ncommand = "${TWOGATE_PYTHON}"\nargs = ["server.py"]\n')
    with pytest.raises(TwogateError) as raised:
        await list_tools(target.servers[0].launch())
    (line,) = raised.value.lines
    assert line.endswith(
        "does not connect: its answer (ListToolsResult) breaks the protocol: tools.1.inputSchema.type: Field required; "
        "tools.2.name: Field required"
    )


def test_of_one_server_alone_the_others_variables_need_not_be_set(tmp_path: Path) -> None:
    text = """
[servers.one]
command = "one"
[servers.two]
command = "two"
args = ["${KEY}"]
roots = ["gone"]
"""
    (tmp_path / "twogate.toml").write_text(text, encoding="utf-8")
    target = load_target(tmp_path, {}, only="one")
    assert [server.name for server in target.servers] == ["one", "two"]
    for only in (None, "two"):
        with pytest.raises(TwogateError) as raised:
            load_target(tmp_path, {}, only=only)
        assert len(raised.value.lines) == 2

"""A target nobody here wrote: Apify's MCP server from npm, through the PR gate. The model is scripted."""

from __future__ import annotations

from pathlib import Path

from lab import Lab, tool_call_item


def test_items_for_the_apify_server_run_through_the_gate(lab: Lab, npm_bin: Path) -> None:
    lab.target(
        f"""
[servers.apify]
command = "{npm_bin}/actors-mcp-server"
env = {{ PATH = "{npm_bin}:${{PATH}}", APIFY_TOKEN = "${{APIFY_TOKEN}}", TELEMETRY_ENABLED = "false" }}
tools_arg = "--tools={{tools}}"
connect_timeout = 60
"""
    )
    instagram = "Is there something ready-made that reads Instagram profiles?"
    proxy = "How do I set a proxy in a crawler?"
    lab.dataset(
        [
            tool_call_item("find-scraper", instagram, ["search-actors"], tools=["actors", "runs", "storage"]),
            tool_call_item("how-to-proxy", proxy, ["search-apify-docs"], tools=["docs"]),
        ],
        "apify-pr",
    )
    script = lab.script(
        [
            {
                "match": {"contains": "Instagram"},
                "turns": [{"calls": [{"name": "search-actors", "input": {"keywords": "instagram profile"}}]}],
            },
            {
                "match": {"contains": "proxy"},
                "turns": [
                    {"calls": [{"name": "search-apify-docs", "input": {"query": "proxy", "docSource": "apify"}}]}
                ],
            },
        ]
    )
    done = lab.twogate("run", "--dataset", "apify-pr", "--scripted", str(script), APIFY_TOKEN="x")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "📊 2/2 passed (100.0 %), threshold 90 %: gate passed"
    for result in lab.trials().values():
        assert result.conversation is not None
        (call,) = result.conversation.calls
        assert (call.server, call.denied) == ("apify", True)

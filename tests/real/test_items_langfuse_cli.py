"""What ``twogate items push`` writes, read by the official ``langfuse-cli`` from a store of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from lab import REPOSITORY_TARGET, Lab, tool_call_item

from evals.embedded.langfuse import EmbeddedStore


def test_langfuse_cli_shows_what_was_pushed(npm_bin: Path, tmp_path: Path) -> None:
    item = tool_call_item("readme", "What is „this“ about?", ["read_file"], expectedArgs={"path": "README.md"})
    lab = Lab(tmp_path)
    lab.target(REPOSITORY_TARGET)
    file = tmp_path / "pr.json"
    with EmbeddedStore(tmp_path / "store.db") as store:
        keys: dict[str, Any] = {
            "LANGFUSE_BASE_URL": store.base_url,
            "LANGFUSE_PUBLIC_KEY": store.public_key,
            "LANGFUSE_SECRET_KEY": store.secret_key,
        }

        def shown(*arguments: str) -> dict[str, Any]:
            path = f"{npm_bin}{os.pathsep}{os.environ['PATH']}"
            ended = subprocess.run(
                [str(npm_bin / "langfuse"), "api", *arguments, "--json"],
                env={**os.environ, **keys, "PATH": path},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert ended.returncode == 0, ended
            body = json.loads(ended.stdout)["body"]
            assert isinstance(body, dict)
            return body

        def push(**changes: Any) -> str:
            metadata = {**item["metadata"], **changes}
            kept = {**item, "metadata": {key: value for key, value in metadata.items() if value is not None}}
            file.write_text(json.dumps({"dataset": "things-pr", "items": [kept]}), encoding="utf-8")
            pushed = lab.twogate("items", "push", str(file), **keys)
            assert pushed.returncode == 0, pushed.stderr
            return pushed.stdout

        assert f"1 new, 0 changed, 0 unchanged in things-pr ({store.base_url}); sent and read back" in push()
        first = shown("dataset-items", "get", item["id"])
        assert (first["id"], first["datasetName"], first["status"]) == (item["id"], "things-pr", "ACTIVE")
        assert (first["input"], first["metadata"]) == (item["input"], item["metadata"])

        assert "nothing to send" in push()
        assert shown("dataset-items", "get", item["id"])["updatedAt"] == first["updatedAt"]

        assert "0 new, 1 changed" in push(expectedArgs=None)
        second = shown("dataset-items", "get", item["id"])
        assert second["metadata"] == {key: item["metadata"][key] for key in ("category", "kind", "expectedTools")}

        archived = lab.twogate("items", "archive", item["id"], **keys)
        assert archived.returncode == 0, archived.stderr
        assert shown("dataset-items", "get", item["id"])["status"] == "ARCHIVED"

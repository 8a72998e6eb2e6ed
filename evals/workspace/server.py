"""The repository MCP server: a workspace's files to list, read and search, and its tasks to verify.

What agents see of it, names, descriptions and schemas, is here; the work is done by the rest of the package.
"""

from __future__ import annotations

import difflib
import inspect
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations
from pydantic import Field

from evals import __version__
from evals.errors import TwogateError
from evals.workspace.bounded import PatternTimeoutError
from evals.workspace.command import RunCancelledError
from evals.workspace.paths import WorkspaceError
from evals.workspace.results import FileList, FileText, Hit, SearchHits, Verification
from evals.workspace.safe import SafeWorkspace
from evals.workspace.searching import MAX_CONTEXT_LINES, MAX_QUERY_CHARS, Query, search, split_lines
from evals.workspace.task import Task
from evals.workspace.verifications import Verifications
from evals.workspace.verifier import Options, verify

SERVER_NAME: Final = "repository"
MAX_FILES: Final = 1_000
MAX_MATCHES: Final = 500
MAX_LINES: Final = 1_000
MAX_READ_CHARS: Final = 60_000
SEARCH_SECONDS: Final = 5.0
MIN_SEARCH_SECONDS: Final = 1.0
MAX_SEARCH_WORKERS: Final = 4

_INSTRUCTIONS: Final = (
    "Read-only access to one code repository. All paths are relative to its root, with '/' between names. "
    "search_text finds where something is; list_files shows what exists; read_file shows a file; verify_task runs "
    "a check that the operator of this server registered."
)

_BUSY: Final = "The server is busy with other searches. Call search_text again, or search literal text."

_Path = Annotated[str, Field(min_length=1, max_length=4096)]


class RepositoryServer:
    """The MCP server `mcp` over a workspace; it verifies `tasks` and no others. The caller closes the workspace."""

    def __init__(self, workspace: SafeWorkspace, tasks: Sequence[Task] = (), options: Options | None = None) -> None:
        self._tools = tools = _Tools(workspace, {task.task_id: task for task in tasks}, options or Options())
        self.mcp: MCPServer[None] = MCPServer(
            SERVER_NAME,
            title="Repository",
            instructions=_INSTRUCTIONS,
            version=__version__,
            log_level="WARNING",
            tools=[
                _tool(tools.list_files, "List repository files"),
                _tool(tools.read_file, "Read a file"),
                _tool(tools.search_text, "Search file contents"),
                _tool(tools.verify_task(), "Verify a repository task", _verify_description(tuple(tools.tasks))),
            ],
        )

    def stop(self) -> None:
        """End the verifications that are running, and wait until nothing of them is left."""
        self._tools.verifications.stop()


def _tool(body: Callable[..., Any], title: str, description: str | None = None) -> Tool:
    """A tool that refuses arguments it does not know: a misspelt one would otherwise be ignored in silence."""
    tool = Tool.from_function(
        body,
        title=title,
        description=description or " ".join((inspect.getdoc(body) or "").split()),
        annotations=ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    tool.parameters["additionalProperties"] = False
    return tool


class _Tools:
    """The tools' bodies. Their docstrings are the descriptions that models read."""

    def __init__(self, workspace: SafeWorkspace, tasks: Mapping[str, Task], options: Options) -> None:
        self._workspace = workspace
        self.tasks = tasks
        self._options = options
        self.verifications = Verifications()
        self._search_slots = threading.BoundedSemaphore(MAX_SEARCH_WORKERS)

    def list_files(
        self,
        path: Annotated[_Path, Field(description="Directory to list, relative to the root.")] = ".",
        pattern: Annotated[
            str | None,
            Field(
                min_length=1,
                max_length=200,
                description="Only files whose name matches this glob, such as '*.py' (any depth), "
                "'docs/**/*.md' (path from the listed directory) or '*.{yml,yaml}'.",
            ),
        ] = None,
        max_results: Annotated[int, Field(ge=1, le=MAX_FILES, description="Most files to return.")] = 200,
    ) -> FileList:
        """List the files of the repository, recursively, by name. Use it to see what exists or to find files by their
        name; to find files by what is in them use search_text. Returns paths from the root, sorted; directories
        appear through the files in them."""
        try:
            listing = self._workspace.list_files(path, pattern, max_results)
        except TwogateError as error:
            raise self._told(error, path) from None
        return FileList(
            path=path,
            files=list(listing.files),
            count=len(listing.files),
            truncated=listing.truncated,
            too_deep=list(listing.too_deep),
        )

    def read_file(
        self,
        path: Annotated[_Path, Field(description="File to read, relative to the root.")],
        start_line: Annotated[
            int | None, Field(ge=1, description="First line to return, from 1. Default: the first.")
        ] = None,
        end_line: Annotated[
            int | None, Field(ge=1, description="Last line to return, inclusive. Default: the last.")
        ] = None,
    ) -> FileText:
        """Read a text file of the repository, whole or a range of its lines. Returns at most 1000 lines or 60,000
        characters at once; when there is more, next_start_line says where to go on. The path must be exact: find
        it with list_files or search_text first."""
        try:
            lines = split_lines(self._workspace.read_text(path))
        except TwogateError as error:
            raise self._told(error, path) from None
        first = start_line or 1
        if end_line is not None and end_line < first:
            raise ToolError(f"end_line {end_line} is before start_line {first}; give a range from top to bottom.")
        if first > max(1, len(lines)):
            raise ToolError(f"{path} has {len(lines)} lines; give a start_line of at most {len(lines)}.")
        return _excerpt(path, lines, first, min(end_line or len(lines), len(lines)))

    def search_text(
        self,
        query: Annotated[
            str, Field(min_length=1, max_length=MAX_QUERY_CHARS, description="Text to look for in each line.")
        ],
        regex: Annotated[
            bool, Field(description="Whether query is a Python regular expression instead of literal text.")
        ] = False,
        path: Annotated[_Path, Field(description="Directory or file to search, relative to the root.")] = ".",
        glob: Annotated[
            str | None,
            Field(
                min_length=1,
                max_length=200,
                description="Only files whose name matches this glob, such as '*.py' or 'src/**/*.ts'.",
            ),
        ] = None,
        case_sensitive: Annotated[bool, Field(description="Whether upper and lower case differ.")] = True,
        context_lines: Annotated[
            int, Field(ge=0, le=MAX_CONTEXT_LINES, description="Lines to show before and after each match.")
        ] = 0,
        max_results: Annotated[int, Field(ge=1, le=MAX_MATCHES, description="Most matching lines to return.")] = 50,
    ) -> SearchHits:
        """Search the contents of the repository's text files, line by line, for literal text (the default) or a
        regular expression. Use it to find where something is defined, used, configured or mentioned. Returns each
        matching line with its file and line number, which read_file takes as start_line, up to 60,000 characters at
        once."""
        wanted = Query(query, regex, path, glob, case_sensitive, context_lines, max_results)
        try:
            with self._search_seconds(wanted) as seconds:
                result = search(self._workspace, wanted, seconds)
        except TwogateError as error:
            raise self._told(error, path) from None
        return SearchHits(
            query=query,
            matches=[
                Hit(
                    path=match.path,
                    line=match.line,
                    text=match.text,
                    before=list(match.before),
                    after=list(match.after),
                )
                for match in result.matches
            ],
            count=len(result.matches),
            truncated=result.truncated,
            files_searched=result.files_searched,
            files_skipped=result.files_skipped,
            too_deep=list(result.too_deep),
        )

    @contextmanager
    def _search_seconds(self, query: Query) -> Iterator[float]:
        """How long a search may take, once it may begin: waiting for other searches counts."""
        if not query.can_stall:
            yield SEARCH_SECONDS
            return
        begun = time.monotonic()
        if not self._search_slots.acquire(timeout=SEARCH_SECONDS):
            raise ToolError(_BUSY)
        try:
            left = SEARCH_SECONDS - (time.monotonic() - begun)
            # In less time not even a harmless search gets its answer.
            if left < MIN_SEARCH_SECONDS:
                raise ToolError(_BUSY)
            yield left
        finally:
            self._search_slots.release()

    def verify_task(self) -> Callable[..., Any]:
        """The verify_task tool; its schema names the task ids that exist."""
        known = list(self.tasks)
        extra: dict[str, Any] | None = {"enum": known} if known else None
        argument = Annotated[
            str, Field(min_length=1, max_length=100, description="Id of the task.", json_schema_extra=extra)
        ]

        async def verify_task(task_id: argument) -> Verification:
            return await self._verify(task_id)

        # The annotation is made here, so it is given as an object: as text it could not be looked up.
        verify_task.__annotations__ = {"task_id": argument, "return": Verification}
        return verify_task

    async def _verify(self, task_id: str) -> Verification:
        task = self.tasks.get(task_id)
        if task is None:
            raise ToolError(self._unknown_task(task_id))
        try:
            report = await self.verifications.run(partial(verify, task, self._workspace, self._options))
        except TwogateError as error:
            raise ToolError("; ".join(error.lines)) from None
        except RunCancelledError:
            raise ToolError("The verification was stopped because the server is ending.") from None
        return Verification.of(report)

    def _unknown_task(self, task_id: str) -> str:
        if not self.tasks:
            return (
                "No task is registered with this server, so nothing can be verified. Its operator registers tasks "
                "by starting it with --task TASK.json."
            )
        near = difflib.get_close_matches(task_id, self.tasks, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return f"There is no task {task_id!r}.{hint} The tasks are: {', '.join(self.tasks)}."

    def _told(self, error: TwogateError, path: str) -> ToolError:
        """The refusal as a model should read it: what is wrong, and what to do next."""
        if isinstance(error, PatternTimeoutError):
            return ToolError(
                f"The search was stopped after {SEARCH_SECONDS:g} s. Simplify the regular expression, narrow path or "
                "glob, or search literal text with regex=false."
            )
        if not isinstance(error, WorkspaceError):
            return ToolError("; ".join(error.lines))
        advice = {
            "missing": self._suggestion(path),
            "not_directory": " list_files takes a directory, read_file takes a file.",
            "is_directory": " Call list_files with this path to see its files.",
            "absolute": " Write it relative to the repository's root, such as 'src/app.py'.",
            "too_large": " Use search_text with this path to find the lines of interest.",
            "not_text": " Only text files can be read.",
        }.get(error.reason, "")
        return ToolError(f"{error.lines[0]}.{advice}")

    def _suggestion(self, path: str) -> str:
        """Up to three files that were probably meant."""
        advice = " Call list_files to see what exists."
        try:
            files = self._workspace.list_files(max_results=self._workspace.limits.max_results).files
        except TwogateError:
            return advice
        name = PurePosixPath(path).name
        near = [file for file in files if PurePosixPath(file).name == name][:3]
        near = near or difflib.get_close_matches(path, files[:2000], n=3, cutoff=0.7)
        return f" Did you mean {' or '.join(near)}?{advice}" if near else advice


def _excerpt(path: str, lines: Sequence[str], first: int, last: int) -> FileText:
    chosen = list(lines[first - 1 : min(last, first - 1 + MAX_LINES)])
    size = 0
    for index, line in enumerate(chosen):
        size += len(line) + 1
        if size > MAX_READ_CHARS and index > 0:
            chosen = chosen[:index]
            break
    end = first + len(chosen) - 1
    if chosen and len(chosen[0]) > MAX_READ_CHARS:
        chosen = [f"{chosen[0][:MAX_READ_CHARS]}… (line cut: it has {len(lines[first - 1])} characters)"]
    return FileText(
        path=path,
        start_line=first if chosen else 0,
        end_line=end if chosen else 0,
        total_lines=len(lines),
        text="\n".join(chosen),
        next_start_line=end + 1 if end < last else None,
    )


def _verify_description(task_ids: Sequence[str]) -> str:
    known = (
        f"The tasks are: {', '.join(task_ids)}."
        if task_ids
        else "No task is registered: the operator registers one by starting the server with --task TASK.json."
    )
    return (
        "Check whether the repository, as it is now, fulfils a registered task: required files are there, required "
        "patterns occur, forbidden patterns do not, and the task's command (usually its tests) succeeds, several times "
        "with the same output. Runs in throw-away copies and changes nothing. Use it to tell whether a task is done or "
        f"why it is not; it takes as long as the task's tests. {known}"
    )

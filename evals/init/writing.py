"""Write the files, each only where none is yet."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from evals import __version__
from evals.authoring.dataset_file import dataset_text, write_text
from evals.errors import TwogateError
from evals.init.config import Config, config_from_mcp_file, config_from_start, config_to_fill_in, mcp_file
from evals.init.drafts import draft_dataset
from evals.init.environment import entries_for, extended, new_file
from evals.init.installation import installed_from
from evals.init.workflows import workflow_text
from evals.items import Gate
from evals.shipped import shipped
from evals.target import CONFIG_FILE

ENVIRONMENT_FILE = ".env.example"
GATES: tuple[Gate, ...] = ("pr", "merge")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


@dataclass(frozen=True)
class Answers:
    """What the author says."""

    wants: tuple[str, ...] = ()
    """What users want, in their words; without any no dataset is drafted."""
    start: str | None = None
    """How the server is started, or its address; asked where there is no .mcp.json."""
    name: str = "server"
    """The server's name, with `start`."""
    requirement: str | None = None
    """What pip installs in the workflows; None for this version, from the index."""


@dataclass
class InitReport:
    """What was done to each file, in order."""

    written: list[str] = field(default_factory=list)
    extended: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        return bool(self.written or self.extended)


def dataset_path(gate: Gate) -> str:
    """Where a gate's starter dataset is written, from the root."""
    return f"fixtures/datasets/{gate}.json"


def workflow_path(gate: Gate) -> str:
    return f".github/workflows/{gate}-gate.yml"


def needs_config(root: Path) -> bool:
    """True where neither a twogate.toml nor a .mcp.json says how the server is started."""
    return not _there(root / CONFIG_FILE) and mcp_file(root) is None


def needs_datasets(root: Path) -> bool:
    """True where a starter dataset is still to be written."""
    return not all(_there(root / dataset_path(gate)) for gate in GATES)


def initialise(root: Path, answers: Answers) -> InitReport:
    """Write what is not there yet. Existing files are left; only .env.example gets what it lacks, at its end.

    Raises TwogateError with every problem: of what was read before anything is written, or of files that can't be
    written after the others are.
    """
    report = InitReport()
    config = _config(root, answers)
    paths = [CONFIG_FILE, *(dataset_path(gate) for gate in GATES if answers.wants), *map(workflow_path, GATES)]
    branch, certain = _main_branch(root)
    requirement = answers.requirement or f"twogate=={__version__}"
    made = [
        (path, _text(path, config, answers.wants, requirement, branch)) for path in paths if not _there(root / path)
    ]
    environment = shipped(ENVIRONMENT_FILE).read_text(encoding="utf-8")
    problems: list[str] = []
    for path, text in made:
        try:
            _create(root / path, text)
            report.written.append(path)
        except FileExistsError:
            report.left.append(path)
        except OSError as error:
            problems.append(f"{path}: cannot be written: {error.strerror}")
    try:
        _environment(root, environment, config, report)
    except TwogateError as error:
        problems += error.lines
    report.left += [path for path in paths if path not in report.written and path not in report.left]
    if CONFIG_FILE in report.written:
        report.notes += config.notes
        if config.variables:
            names = ", ".join(config.variables)
            report.notes.append(f"twogate.toml names {names}: set them in .env, and in CI in the env of the step Gate")
    if not answers.wants and needs_datasets(root):
        report.notes.append("no dataset is drafted: say what your users want by --want TEXT or --wants FILE")
    report.notes += _workflow_notes(report.written, answers, requirement, None if certain else branch)
    if _inside(root):
        report.notes.append(
            "this is not the top folder of the git repository: CI finds no workflows here; move .github"
        )
    if problems:
        done = [f"written before that: {', '.join(report.written)}"] if report.written else []
        raise TwogateError([*problems, *done])
    return report


def _config(root: Path, answers: Answers) -> Config:
    if _there(root / CONFIG_FILE):
        return Config("")
    found = mcp_file(root)
    if found is not None:
        return config_from_mcp_file(found)
    if answers.start:
        return config_from_start(answers.name, answers.start)
    return config_to_fill_in()


def _text(path: str, config: Config, wants: tuple[str, ...], requirement: str, branch: str) -> str:
    if path == CONFIG_FILE:
        return config.text
    gate = next(gate for gate in GATES if path in (dataset_path(gate), workflow_path(gate)))
    if path == dataset_path(gate):
        return dataset_text(draft_dataset(gate, wants))
    return workflow_text(shipped(*path.split("/")), gate, requirement, branch)


def _workflow_notes(written: list[str], answers: Answers, requirement: str, guessed: str | None) -> list[str]:
    """What the author should know of the workflows just written. guessed: the main branch where nothing names it."""
    workflows = [path for path in map(workflow_path, GATES) if path in written]
    notes = []
    origin = installed_from()
    if workflows and answers.requirement is None and origin is not None:
        notes.append(
            f"{' and '.join(workflows)}: CI installs {requirement} from the package index, but this Twogate was "
            f"installed from {origin}; for another, remove these files and run twogate init --install SPEC"
        )
    if guessed is not None and workflow_path("merge") in written:
        notes.append(
            f"{workflow_path('merge')}: runs on pushes to {guessed}, the current branch, since no origin/HEAD names "
            "the main one; change `branches:` if it is another"
        )
    return notes


def _environment(root: Path, shipped_text: str, config: Config, report: InitReport) -> None:
    path = root / ENVIRONMENT_FILE
    entries = entries_for(shipped_text, config.variables)
    try:
        _create(path, new_file(entries))
        report.written.append(ENVIRONMENT_FILE)
        return
    except FileExistsError:
        pass
    except OSError as error:
        raise TwogateError(f"{ENVIRONMENT_FILE}: cannot be written: {error.strerror}") from None
    try:
        with path.open(encoding="utf-8", newline="") as file:  # line ends as they are
            existing = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise TwogateError(f"{ENVIRONMENT_FILE}: cannot be read: {error}; it is left as it is") from None
    text, names = extended(existing, entries)
    if not names:
        report.left.append(ENVIRONMENT_FILE)
        return
    write_text(path.resolve(), text)
    report.extended.append(f"{ENVIRONMENT_FILE} ({', '.join(names)})")


def _create(path: Path, text: str) -> None:
    """A new file. Raises FileExistsError where one stands, also a link to nowhere."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)


def _there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _main_branch(root: Path) -> tuple[str, bool]:
    """The branch that the remote calls its head, else the current one, without commits too; main where nothing says.

    False with a current one of another name than main or master: that may be the branch of a change.
    """
    remote = _git(root, "symbolic-ref", "--short", "-q", "refs/remotes/origin/HEAD").removeprefix("origin/")
    if _BRANCH.fullmatch(remote):
        return remote, True
    current = _git(root, "symbolic-ref", "--short", "-q", "HEAD")
    return (current, current in ("main", "master")) if _BRANCH.fullmatch(current) else ("main", True)


def _inside(root: Path) -> bool:
    """True in a folder below a git repository's top."""
    return bool(_git(root, "rev-parse", "--show-prefix"))


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

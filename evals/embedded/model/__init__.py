"""A model for demonstrations and tests: a real server with scripted answers. See docs/scripted-model.md."""

from evals.embedded.model.loading import load_script, load_scripts, parse_script
from evals.embedded.model.records import RequestRecord
from evals.embedded.model.script import Script
from evals.embedded.model.server import ScriptedModel

__all__ = ["RequestRecord", "Script", "ScriptedModel", "load_script", "load_scripts", "parse_script"]

"""A Langfuse-compatible store over SQLite: what the Langfuse SDK and ``langfuse-cli`` need, and no more."""

from evals.embedded.langfuse.app import create_app
from evals.embedded.langfuse.database import Database
from evals.embedded.langfuse.dataset_files import DatasetFile, FileItem, load_dataset_file
from evals.embedded.langfuse.server import EmbeddedStore
from evals.embedded.langfuse.settings import (
    DEFAULT_PUBLIC_KEY,
    DEFAULT_SECRET_KEY,
    Project,
    StoreSettings,
    is_loopback,
)

__all__ = [
    "DEFAULT_PUBLIC_KEY",
    "DEFAULT_SECRET_KEY",
    "Database",
    "DatasetFile",
    "EmbeddedStore",
    "FileItem",
    "Project",
    "StoreSettings",
    "create_app",
    "is_loopback",
    "load_dataset_file",
]

"""Where the log lines of libraries go: not onto the console, where they would drown what a command says itself."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def redirected(names: Sequence[str], handler: logging.Handler | None = None) -> Iterator[None]:
    """Send the lines of these loggers to a handler alone, or nowhere, for the length of the block."""
    handler = handler or logging.NullHandler()
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, propagate in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.propagate = propagate
        handler.close()


# The clients of servers and models log, with tracebacks, what a trial reports anyway.
CLIENTS = ("mcp", "client", "anthropic")

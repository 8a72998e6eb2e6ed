"""An MCP server and a REST API for saved tasks and their schedules, over one SQLite database.

A target with state: resources have unique names, limits and states that forbid some changes, and errors say what
to do next. ``python -m examples.tasks_server --help`` lists the options. Schedules are kept and know when they run
next, but nothing fires them: an evaluation needs state that changes only by what the agent does.
"""

"""The parameters that several tools share, with the limits their schemas show.

The limits are in the schemas for the model to read; `rules` and `cron` enforce them, so that a refusal has the same
type and text on both APIs.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from examples.tasks_server import rules
from examples.tasks_server.actions import ACTION_HELP, ACTION_NAMES
from examples.tasks_server.cron import CRON_MAX

_REFERENCE: dict[str, Any] = {"minLength": 1, "maxLength": rules.NAME_MAX}
_NAME: dict[str, Any] = {
    "minLength": rules.NAME_MIN,
    "maxLength": rules.NAME_MAX,
    "pattern": rules.NAME_PATTERN,
}
_NAME_HELP = "Letters, digits and hyphens. Unique, whatever the case."

TaskReference = Annotated[str, Field(description="Name or id of the task", json_schema_extra=_REFERENCE)]
ScheduleReference = Annotated[str, Field(description="Name or id of the schedule", json_schema_extra=_REFERENCE)]
Name = Annotated[str, Field(description=_NAME_HELP, json_schema_extra=_NAME)]
NewName = Annotated[str | None, Field(description=f"A new name. {_NAME_HELP}", json_schema_extra=_NAME)]
Title = Annotated[
    str | None, Field(description="Short text for people", json_schema_extra={"maxLength": rules.TITLE_MAX})
]
Description = Annotated[
    str | None,
    Field(
        description="What the task is for; needed before it can be published",
        json_schema_extra={"maxLength": rules.DESCRIPTION_MAX},
    ),
]
_ACTION_HELP = f"What the task does with its input: {ACTION_HELP}."
Action = Annotated[str, Field(description=_ACTION_HELP, json_schema_extra={"enum": list(ACTION_NAMES)})]
NewAction = Annotated[str | None, Field(description=_ACTION_HELP, json_schema_extra={"enum": list(ACTION_NAMES)})]
Input = Annotated[
    dict[str, Any] | None,
    Field(description=f"JSON object that the action works on, at most {rules.INPUT_MAX_BYTES} bytes"),
]
Override = Annotated[
    dict[str, Any] | None,
    Field(description="JSON object laid over the saved input, key by key; the saved input stays as it is"),
]
CronExpression = Annotated[
    str,
    Field(
        description="Minute, hour, day of month, month, day of week, such as '30 6 * * 1-5'; "
        "or @hourly, @daily, @weekly, @monthly, @yearly",
        json_schema_extra={"minLength": 1, "maxLength": CRON_MAX},
    ),
]
Timezone = Annotated[str, Field(description="IANA time zone, such as Europe/Prague")]
Cursor = Annotated[str | None, Field(description="next_cursor of the page before; left out for the first")]
Limit = Annotated[int, Field(description="Entries a page", json_schema_extra={"minimum": 1, "maximum": rules.PAGE_MAX})]
Search = Annotated[
    str | None,
    Field(
        description="Only those that contain this text, whatever the case",
        json_schema_extra={"maxLength": rules.SEARCH_MAX},
    ),
]

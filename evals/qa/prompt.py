"""What a model is told, and what is read from its last message: a summary, feedback on the tools, the answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evals.conversation import Conversation

NOT_FOUND = "NOT_FOUND"

SYSTEM = f"""\
You answer one question. Everything it asks for can be found with the tools you have; do not answer from memory, and
do not guess. Read only: do not create, change or delete anything on the way.

Work until you are sure, then end with one message that has these three parts, each in its tags:

<summary>
The steps you took: which tools you called in which order, with what arguments, and what each told you.
</summary>
<feedback>
What you noticed about the tools, for the people who build them. One line for each tool you have something to say
about, starting with its name and a colon. Say what helped and what hindered: names, descriptions and parameters that
were unclear, missing or misleading; errors, and whether their texts helped you on; results that held too much or too
little; what you would change.
</feedback>
<response>
The answer and nothing else: no sentence around it, no explanation, no markup, in exactly the form the question asks
for. It is compared with the right answer character by character.
</response>

If the tools cannot give you the answer, the response is {NOT_FOUND}."""


@dataclass(frozen=True)
class Reply:
    """The parts of a model's last message; None where a part is missing."""

    summary: str | None = None
    feedback: str | None = None
    response: str | None = None


def read_reply(conversation: Conversation) -> Reply:
    """The last of each part in the message that ends the conversation.

    A message that makes calls is not the last: what it says may still change.
    """
    text = conversation.final_answer or ""
    return Reply(_last(text, "summary"), _last(text, "feedback"), _last(text, "response"))


def _last(text: str, tag: str) -> str | None:
    closings = list(re.finditer(rf"</{tag}\s*>", text, re.IGNORECASE))
    if not closings:
        return None
    before = text[: closings[-1].start()]
    openings = list(re.finditer(rf"<{tag}\s*>", before, re.IGNORECASE))
    return before[openings[-1].end() :].strip() if openings else None

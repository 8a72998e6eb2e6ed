"""What a model is told, and what is read from its last message: a summary, feedback on the tools, the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
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


_NO_ANSWER = ("refusal", "max_tokens", "context_overflow")
_TAG = re.compile(r"<(?P<end>/?)(?P<name>summary|feedback|response)\s*>", re.IGNORECASE)


def read_reply(conversation: Conversation) -> Reply:
    """The last of each part in the message that ends the conversation.

    A message that makes calls is not the last: what it says may still change. What was said before a refusal, or
    before a message was cut off, is no response.
    """
    parts = dict(_parts(conversation.final_answer or ""))
    if conversation.stop in _NO_ANSWER:
        parts.pop("response", None)
    return Reply(parts.get("summary"), parts.get("feedback"), parts.get("response"))


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Every part with its content, in order. A part ends at the next closing tag of its name.

    Tags inside a summary or feedback are what the model writes about, not parts. An opening tag without a closing one
    is none, and neither is one that is followed by another of its name before that.
    """
    tags = [(match["name"].lower(), bool(match["end"]), match) for match in _TAG.finditer(text)]
    position = 0
    while position < len(tags):
        name, ends, opening = tags[position]
        position += 1
        if ends:
            continue
        for place in range(position, len(tags)):
            if tags[place][0] != name:
                continue
            if tags[place][1]:
                yield name, text[opening.end() : tags[place][2].start()].strip()
                position = place + 1
            break

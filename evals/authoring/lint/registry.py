"""All rules. A code is stable: it is never given to another rule."""

from __future__ import annotations

from evals.authoring.lint import creating, dataset, expectations, naming, reference, wording
from evals.authoring.lint.rules import Rule, each_item

INVALID = "TW001"
"""The code of what `twogate items validate` refuses; it has no rule of its own."""

INVALID_WHY = "a run refuses the whole dataset while one item is invalid"

_GIVEN_AWAY = "a user knows no such name, so the case measures reading instead of choosing"

RULES: tuple[Rule, ...] = (
    Rule(
        "TW002",
        "draft",
        "error",
        "a draft says what somebody still has to write, not what a user wants",
        each_item(dataset.draft),
    ),
    Rule(
        "TW003",
        "near-duplicate",
        "warning",
        "two cases that ask the same weigh one behaviour twice and cost twice",
        dataset.near_duplicates,
    ),
    Rule("TW101", "names-a-tool", "error", _GIVEN_AWAY, each_item(naming.names_a_tool), needs_target=True),
    Rule("TW102", "names-a-parameter", "error", _GIVEN_AWAY, each_item(naming.names_a_parameter), needs_target=True),
    Rule("TW103", "names-a-family", "error", _GIVEN_AWAY, each_item(naming.names_a_family)),
    Rule(
        "TW104",
        "hard-item-names-a-tool",
        "error",
        "a hard case is about finding the way; with the tool named it is an easy one that looks hard",
        each_item(naming.hard_item_names_a_tool),
        needs_target=True,
    ),
    Rule(
        "TW105",
        "copies-description",
        "error",
        "the model matches the words, so the case passes however bad the description is",
        naming.copies_a_description,
        needs_target=True,
    ),
    Rule(
        "TW106",
        "placeholder-host",
        "error",
        "models see that the host is made up and ask for a real one instead of calling a tool",
        each_item(wording.placeholder_host),
    ),
    Rule(
        "TW107",
        "verbatim-repetition",
        "warning",
        "models shorten or refuse long repetitions, and a judge cannot compare them; it says nothing about the tools",
        each_item(wording.verbatim_repetition),
    ),
    Rule(
        "TW108",
        "created-without-prefix",
        "error",
        "what has no prefix is never cleaned up, so the next run meets what this one left",
        each_item(creating.created_without_prefix),
    ),
    Rule(
        "TW109",
        "error-not-expected",
        "warning",
        "a failed call of a tool that is not in expectedErrors fails the trial, however well it is answered",
        each_item(wording.provokes_an_error),
    ),
    Rule(
        "TW110",
        "too-few-turns",
        "warning",
        "an agent cut off at the limit is judged on half an answer",
        each_item(wording.too_few_turns),
    ),
    Rule(
        "TW201",
        "reference-form",
        "error",
        "a judge told only what is good lets too much pass, and votes differ from one time to the next",
        each_item(reference.form),
    ),
    Rule(
        "TW202",
        "reference-unseen",
        "error",
        "the judge sees the query, the calls with their arguments and the answers; the rest it would have to guess",
        each_item(reference.unseen),
    ),
    Rule(
        "TW203",
        "reference-punishes-silence",
        "warning",
        "a right answer then fails for brevity, which is a matter of the model and not of the server",
        each_item(reference.punishes_silence),
    ),
    Rule(
        "TW204",
        "reference-demands-courtesy",
        "warning",
        "a right answer then fails for its tone, which is a matter of the model and not of the server",
        each_item(reference.demands_courtesy),
    ),
    Rule(
        "TW301",
        "tool-lacking",
        "error",
        "the case can never pass, whatever the model does",
        each_item(expectations.lacking_tool),
        needs_target=True,
    ),
    Rule(
        "TW302",
        "argument-unknown",
        "error",
        "no right call has this argument, so the case can never pass",
        each_item(expectations.unknown_argument),
        needs_target=True,
    ),
    Rule(
        "TW303",
        "argument-impossible",
        "error",
        "the server would refuse this argument, so the case rewards a wrong call",
        each_item(expectations.impossible_value),
        needs_target=True,
    ),
    Rule(
        "TW304",
        "argument-not-shared",
        "error",
        "any of the expected tools is a right first call, but only some can have the argument",
        each_item(expectations.unshared_argument),
        needs_target=True,
    ),
)

CODES: tuple[str, ...] = (INVALID, *(rule.code for rule in RULES))

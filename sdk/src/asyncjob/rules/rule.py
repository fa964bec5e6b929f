"""What a rule is, and the short names and small pieces of CEL that rules are written with."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_SHORT_NAMES: Final[Mapping[str, str]] = {
    "now": "object.status",
    "was": "oldObject.status",
    "spec": "object.spec",
    "spec_was": "oldObject.spec",
    "moved": "(oldObject.status.phase != object.status.phase)",
    "claimed": "(oldObject.status.phase == 'Queued' && object.status.phase == 'Running')",
    "redriven": "(oldObject.status.phase == 'DeadLetter' && object.status.phase == 'Queued')",
    "parked": "(oldObject.status.phase == 'Running'"
    " && object.status.phase in ['Scheduled', 'Pending'])",
    "woken": "(has(oldObject.status.waiting) && object.status.phase == 'Queued')",
    "finished": "(object.status.phase in ['Succeeded', 'DeadLetter', 'Cancelled'])",
}
"""In a policy; `now` and `was` are the new and the old status."""

_TOKEN: Final = re.compile(
    rf"""'(?:[^'\\]|\\.)*'|(?<![\w.?])(?:{"|".join(_SHORT_NAMES)})\b(?!\s*\()"""
)


def expand_names(expression: str) -> str:
    """Return the CEL with its short names written out, texts left alone."""
    return _TOKEN.sub(lambda found: _SHORT_NAMES.get(found[0], found[0]), expression)


def cel_string(value: str) -> str:
    """Return a CEL string."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def cel_list(values: Iterable[str]) -> str:
    """Return a CEL list of strings."""
    return f"[{', '.join(cel_string(value) for value in values)}]"


def cel_and(expressions: Iterable[str]) -> str:
    """Return the conjunction; each part is put in brackets."""
    return " && ".join(f"({expression})" for expression in expressions)


def unchanged(field: str) -> str:
    """Return that a field of the status is as it was, absence included."""
    return f"now.?{field} == was.?{field}"


def count(counter: str, status: str = "now") -> str:
    """Return a counter of the status, which is absent as long as it is 0."""
    return f"{status}.?{counter}.orValue(0)"


def grew(counter: str) -> str:
    """Return that a counter of the status is greater than it was."""
    return f"{count(counter)} > {count(counter, 'was')}"


def unchanged_json(parent: str, field: str) -> str:
    """Return that free JSON is as it was; no schema tells the API server of its type."""
    old = {"now": "was", "spec": "spec_was"}[parent]
    return f"dyn({parent}).?{field} == dyn({old}).?{field}"


class StatusWrite(StrEnum):
    """What a write to the status is, as far as rules tell writes apart; CEL for each."""

    CLAIM = "claimed"
    """From Queued to Running."""

    PHASE_CHANGE = "moved && !claimed"
    """Any other change of phase."""

    SAME_PHASE = "!moved"
    """A report without a change of phase."""


@dataclass(frozen=True)
class Rule:
    """One rule: `cel` is CEL and true where it is obeyed, or CEL for each kind of write.

    `message_cel` is CEL for a text that says what was tried and what is legal; without one it is
    `description`. `is_forbidden` tells a question of who (403) from one of what (422).
    """

    id: str
    description: str
    cel: str | Mapping[StatusWrite, str]
    message_cel: str = ""
    is_forbidden: bool = False

    def cel_for(self, write: StatusWrite) -> str:
        """Return the CEL for one kind of write; empty if the rule demands nothing of it."""
        return self.cel if isinstance(self.cel, str) else self.cel.get(write, "")

    @property
    def expression(self) -> str:
        """Return the CEL for any write, short names written out."""
        if isinstance(self.cel, str):
            return expand_names(self.cel)
        claim, move, stay = (
            f"({self.cel_for(write)})" if self.cel_for(write) else "true" for write in StatusWrite
        )
        return expand_names(f"moved ? (claimed ? {claim} : {move}) : {stay}")

    @property
    def message_text(self) -> str:
        """Return the constant message, with the rule's id."""
        return f"{self.description} ({self.id})"

    @property
    def message_expression(self) -> str:
        """Return CEL for the message with the rule's id, or nothing."""
        return (
            expand_names(f"({self.message_cel}) + {cel_string(f' ({self.id})')}")
            if self.message_cel
            else ""
        )


def all_rules_hold(rules: tuple[Rule, ...]) -> str:
    """Return that all rules are obeyed, as one expression that decides first what the write is."""
    claim, move, stay = (
        cel_and(rule.cel_for(write) for rule in rules if rule.cel_for(write)) or "true"
        for write in StatusWrite
    )
    return expand_names(f"moved ? (claimed ? {claim} : {move}) : {stay}")

"""What a law is."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from asyncjob.schema.laws.expressions import all_of, expand, quote


class Write(StrEnum):
    """What a write to the status is, as far as laws tell writes apart; CEL for each."""

    CLAIM = "claimed"
    """From Queued to Running."""

    MOVE = "moved && !claimed"
    """Any other change of phase."""

    STAY = "!moved"
    """A report without a change of phase."""


@dataclass(frozen=True)
class Law:
    """One law: `holds` is CEL and true where it is obeyed, or CEL for each kind of write.

    `message` is CEL for a text that says what was tried and what is legal; without one it is
    `demands`. `forbids` tells a question of who (403) from one of what (422).
    """

    id: str
    demands: str
    holds: str | Mapping[Write, str]
    message: str = ""
    forbids: bool = False

    def on(self, write: Write) -> str:
        """Return the CEL for one kind of write; empty if the law demands nothing of it."""
        return self.holds if isinstance(self.holds, str) else self.holds.get(write, "")

    @property
    def expression(self) -> str:
        """Return the CEL for any write, short names written out."""
        if isinstance(self.holds, str):
            return expand(self.holds)
        claim, move, stay = (f"({self.on(write)})" if self.on(write) else "true" for write in Write)
        return expand(f"moved ? (claimed ? {claim} : {move}) : {stay}")

    @property
    def text(self) -> str:
        """Return the constant message, with the law's id."""
        return f"{self.demands} ({self.id})"

    @property
    def message_expression(self) -> str:
        """Return CEL for the message with the law's id, or nothing."""
        return expand(f"({self.message}) + {quote(f' ({self.id})')}") if self.message else ""


def obeyed(laws: tuple[Law, ...]) -> str:
    """Return that all laws are obeyed, as one expression that decides first what the write is."""
    claim, move, stay = (
        all_of(law.on(write) for law in laws if law.on(write)) or "true" for write in Write
    )
    return expand(f"moved ? (claimed ? {claim} : {move}) : {stay}")

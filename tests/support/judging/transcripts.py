"""What API servers answered, without what differs from run to run: UIDs, versions and times."""

import re
from dataclasses import dataclass, field
from typing import Any

from support.cluster.api import Answer

_UID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"^\d+s$")


@dataclass
class Transcript:
    """Answers in order; the same UID or version has the same number wherever it appears."""

    entries: list[tuple[str, int, Any]] = field(default_factory=list)
    _numbers: dict[str, str] = field(default_factory=dict)

    def note(self, title: str, answer: Answer) -> dict[str, Any]:
        """Add an answer, and return its body."""
        body = self._plain(answer.body)
        if answer.warnings:
            body = {**body, "warnings": sorted(answer.warnings)}
        self.entries.append((title, answer.status, body))
        return answer.body

    def note_value(self, title: str, value: Any) -> None:
        """Add what was found out otherwise."""
        self.entries.append((title, 0, self._plain(value)))

    def _plain(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return self._plain_object(value)
        if isinstance(value, list):
            return [self._plain(one) for one in value]
        if isinstance(value, str):
            return self._plain_text(value, name)
        return value

    def _plain_object(self, value: dict[str, Any]) -> dict[str, Any]:
        if value.get("type") == "BOOKMARK":  # other tests write meanwhile
            metadata = {**value["object"]["metadata"], "resourceVersion": ""}
            value = {**value, "object": {**value["object"], "metadata": metadata}}
        if version := _list_version(value):
            value = {**value, "metadata": {**value["metadata"], "resourceVersion": ""}}
        # Details repeat what the message says.
        plain = {key: self._plain(value[key], key) for key in sorted(value) if key != "details"}
        if version:
            plain["metadata"]["resourceVersion"] = self._as_of(version)
        return plain

    def _as_of(self, version: int) -> str:
        """Return a list's version by the newest noted one that it has: others write meanwhile."""
        noted = [key.split(" ")[1] for key in self._numbers if key.startswith("version ")]
        newest = max((int(one) for one in noted if int(one) <= version), default=0)
        return f"as of {self._number('version', str(newest))}" if newest else "as of none"

    def _plain_text(self, value: str, name: str) -> str:
        if name == "resourceVersion" and value:
            return self._number("version", value)
        if name == "continue" and value:
            return "CONTINUE"  # has the whole store's version in it
        if _UID.match(value):
            return self._number("uid", value)
        if name == "message":
            return self._message(value)
        return _AGE.sub("AGE", _TIME.sub("TIME", value))

    def _number(self, kind: str, value: str) -> str:
        key = f"{kind} {value}"
        if key not in self._numbers:
            self._numbers[key] = f"{kind}-{len(self._numbers)}"
        return self._numbers[key]

    def _message(self, text: str) -> str:
        for key, number in self._numbers.items():
            kind, value = key.split(" ", 1)
            if kind == "uid" or (kind == "version" and "ResourceVersion" in text):
                text = text.replace(value, number)
        return _sorted_errors(_TIME.sub("TIME", text))


def _list_version(value: dict[str, Any]) -> int:
    """Return the version of a list or table, which is the whole store's; 0 for all else."""
    if not ({"items", "rows"} & value.keys() and "metadata" in value):
        return 0
    return int(value["metadata"].get("resourceVersion") or 0)


def _sorted_errors(text: str) -> str:
    """Return a refusal with its errors in one order: a real API server has them in any."""
    head, bracket, rest = text.partition(" is invalid: [")
    if not bracket:
        return text
    parts = re.split(r", (?=(?:[a-zA-Z]+\.|<nil>|metadata|spec|status)[^ ]*: )", rest[:-1])
    return f"{head}{bracket}{'; '.join(sorted(parts))}]"

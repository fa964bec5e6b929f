"""What became of a scenario, in a form in which two clusters can be compared."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from asyncjob.json_types import JsonObject
from asyncjob.names import ARRAY_KIND
from contract.cluster import Cluster
from contract.scenarios import Scenario

_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z")
_WORKER = re.compile(r"\b(fake-worker|worker-[a-z0-9-]+)(/[0-9a-f]+)?")
_RANDOM = {"uid": "<uid>", "claim": "<claim>", "holderUID": "<uid>", "durationSeconds": "<seconds>"}
_OPERATORS_OWN = {"writer", "claims"}
_RULE = re.compile(r"\(([a-z]+\.[\w.-]+)\)")
_UNKNOWN = re.compile(r'unknown field "[^"]+"')
_FIELD = re.compile(r"spec\.[\w.]+")


@dataclass
class Life:
    """The objects that a scenario returned, or what went wrong."""

    objects: list[Any] = field(default_factory=list)
    failure: Exception | None = None
    versions: list[Sequence[JsonObject]] = field(default_factory=list)
    array_versions: list[Sequence[JsonObject]] = field(default_factory=list)

    def check(self) -> None:
        """Raise what went wrong."""
        if self.failure is not None:
            raise self.failure


async def live(scenario: Scenario, cluster: Cluster) -> Life:
    """Run a scenario; what it raises is kept for the test of its name."""
    try:
        return Life(await scenario(cluster))
    except Exception as error:  # noqa: BLE001  # kept, and raised by the test that asks for it
        return Life(failure=error)


def comparable(objects: list[Any]) -> list[Any]:
    """Return the objects without what no two runs have in common: times, ids, names of workers."""
    return [_refusal(*one) if isinstance(one, tuple) else _object(one) for one in objects]


def _object(obj: dict[str, Any]) -> dict[str, Any]:
    return _array(obj) if obj["kind"] == ARRAY_KIND else _job(obj)


def _array(obj: dict[str, Any]) -> dict[str, Any]:
    """Return it without who wrote it, how often, and the names of chunks, made of the UID."""
    status = {name: value for name, value in obj["status"].items() if name not in _OPERATORS_OWN}
    chunks = [{**chunk, "name": "<chunk>"} for chunk in status.get("open", [])]
    return {
        "name": obj["metadata"]["name"],
        "spec": _same(obj["spec"]),
        "status": _same({**status, **({"open": chunks} if chunks else {})}),
    }


def _job(obj: dict[str, Any]) -> dict[str, Any]:
    spec, status = obj["spec"], obj["status"]
    own = {"queue": "<queue>"} if spec["queue"] != "default" else {}
    return {
        "name": obj["metadata"]["name"],
        "spec": _same({**spec, **own}),
        "status": _same(status),
    }


def _same(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _RANDOM.get(name) or _same(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_same(item) for item in value]
    if isinstance(value, str):
        return _WORKER.sub("<worker>", _TIME.sub("<time>", value))
    return value


def _refusal(code: int, words: str) -> tuple[int, str]:
    """Return the code, and the rule, unknown field or field that the words are about."""
    for pattern in (_RULE, _UNKNOWN, _FIELD):
        if found := pattern.search(words):
            return code, found.group(0)
    return code, words

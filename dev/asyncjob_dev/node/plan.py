"""What is decided about a node before it starts: written by the machine's side, read by its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncjob_dev.files import write_private
from asyncjob_dev.node.network import Block


@dataclass(frozen=True)
class Plan:
    """A node's addresses, and where its programs are."""

    block: Block
    programs: Mapping[str, str]


def save(path: Path, plan: Plan) -> None:
    """Write the plan in one step."""
    write_private(path, json.dumps({"block": plan.block.number, "programs": dict(plan.programs)}))


def load(path: Path) -> Plan | None:
    """Return the plan; None where there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return Plan(Block(found["block"]), found["programs"])

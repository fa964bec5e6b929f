"""What is decided about a node before it starts: written by the machine's side, read by its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncjob_dev.files import write_private
from asyncjob_dev.node.network import NodeNetwork


@dataclass(frozen=True)
class NodePlan:
    """A node's addresses, and where its programs are."""

    block: NodeNetwork
    programs: Mapping[str, str]


def save_plan(path: Path, plan: NodePlan) -> None:
    """Write the plan in one step."""
    write_private(path, json.dumps({"block": plan.block.number, "programs": dict(plan.programs)}))


def load_plan(path: Path) -> NodePlan | None:
    """Return the plan; None where there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return NodePlan(NodeNetwork(found["block"]), found["programs"])

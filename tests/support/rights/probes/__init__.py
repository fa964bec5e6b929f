"""For each right that the chart gives, something that works with it and breaks without it."""

from collections.abc import Mapping

from support.rights.model import Right
from support.rights.probes import gateway, operator, users, worker
from support.rights.probes.probe import Probe

PROBES: Mapping[tuple[str, str], Mapping[Right, Probe]] = {
    **operator.PROBES,
    **gateway.PROBES,
    **worker.PROBES,
    **users.PROBES,
}
"""By account (or role of users) and the name of the role that gives the right."""

__all__ = ["PROBES", "Probe"]

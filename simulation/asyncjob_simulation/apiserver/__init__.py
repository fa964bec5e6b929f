"""An API server in memory that enforces the installed CRDs, policies and roles.

`ApiServer` answers requests, `connect()` lets the project's own `KubeSession` send them to it, and
`Faults` decides what goes wrong on the way. No module here reads a clock or rolls dice by itself.
"""

from asyncjob_simulation.apiserver.access import MemoryAccess
from asyncjob_simulation.apiserver.faults import NO_FAULT, Call, Fault, Faults, ScriptedFaults
from asyncjob_simulation.apiserver.http import MemoryConnections
from asyncjob_simulation.apiserver.identities import ADMIN, Identity, pod_identity
from asyncjob_simulation.apiserver.server import ApiServer, Request, Response

__all__ = [
    "ADMIN",
    "NO_FAULT",
    "ApiServer",
    "Call",
    "Fault",
    "Faults",
    "Identity",
    "MemoryAccess",
    "MemoryConnections",
    "Request",
    "Response",
    "ScriptedFaults",
    "pod_identity",
]

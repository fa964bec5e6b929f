"""All policies."""

from typing import Final

from asyncjob.schema.policies.leases import LEASES
from asyncjob.schema.policies.lifecycle import LIFECYCLE
from asyncjob.schema.policies.ownership import OWNERSHIP
from asyncjob.schema.policies.policy import Policy
from asyncjob.schema.policies.removal import REMOVAL
from asyncjob.schema.policies.settings import SETTINGS
from asyncjob.schema.policies.sources import SOURCES
from asyncjob.schema.policies.spec import CREATION, SPEC

POLICIES: Final[tuple[Policy, ...]] = (
    *(LIFECYCLE, OWNERSHIP, SPEC, CREATION),
    *(REMOVAL, SETTINGS, SOURCES, LEASES),
)

"""All policies."""

from typing import Final

from asyncjob.schema.policies.leases import WORKER_LEASE_POLICY
from asyncjob.schema.policies.lifecycle import LIFECYCLE_POLICY
from asyncjob.schema.policies.ownership import OWNERSHIP_POLICY
from asyncjob.schema.policies.policy import AdmissionPolicy
from asyncjob.schema.policies.removal import REMOVAL_POLICY
from asyncjob.schema.policies.settings import SETTINGS_POLICY
from asyncjob.schema.policies.sources import PAYLOAD_SOURCE_POLICY
from asyncjob.schema.policies.spec import CREATION_POLICY, SPEC_POLICY

POLICIES: Final[tuple[AdmissionPolicy, ...]] = (
    *(LIFECYCLE_POLICY, OWNERSHIP_POLICY, SPEC_POLICY, CREATION_POLICY),
    *(REMOVAL_POLICY, SETTINGS_POLICY, PAYLOAD_SOURCE_POLICY, WORKER_LEASE_POLICY),
)

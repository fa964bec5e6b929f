"""All admission policies, in the order in which the reference lists them."""

from typing import Final

from asyncjob.rules.access_policies import (
    PAYLOAD_SOURCE_POLICY,
    REMOVAL_POLICY,
    SETTINGS_POLICY,
    WORKER_LEASE_POLICY,
)
from asyncjob.rules.array_policies import (
    ARRAY_CREATION_POLICY,
    ARRAY_SPEC_POLICY,
    ARRAY_STATUS_POLICY,
)
from asyncjob.rules.job_policies import (
    CREATION_POLICY,
    LIFECYCLE_POLICY,
    OWNERSHIP_POLICY,
    SPEC_POLICY,
)
from asyncjob.rules.policy import AdmissionPolicy
from asyncjob.rules.signal_policy import SIGNAL_POLICY

POLICIES: Final[tuple[AdmissionPolicy, ...]] = (
    *(LIFECYCLE_POLICY, OWNERSHIP_POLICY, SPEC_POLICY, CREATION_POLICY),
    *(REMOVAL_POLICY, SETTINGS_POLICY, PAYLOAD_SOURCE_POLICY, WORKER_LEASE_POLICY),
    SIGNAL_POLICY,
    *(ARRAY_CREATION_POLICY, ARRAY_SPEC_POLICY, ARRAY_STATUS_POLICY),
)

"""Payloads and results that are too large for the job: where they lie, and how they get there.

Knows nothing of jobs' rules or of Kubernetes; worker, gateway and client read and write alike.
"""

from asyncjob.offload.addresses import Address, AllowList, default_prefixes
from asyncjob.offload.errors import (
    AddressError,
    DriverMissingError,
    IntegrityError,
    ObjectMissingError,
    ObjectTooLargeError,
    OffloadError,
    StoreForbiddenError,
    StoreRefusedError,
    StoreUnavailableError,
)
from asyncjob.offload.store import Store
from asyncjob.offload.transfer import fetch, offload

__all__ = [
    "Address",
    "AddressError",
    "AllowList",
    "DriverMissingError",
    "IntegrityError",
    "ObjectMissingError",
    "ObjectTooLargeError",
    "OffloadError",
    "Store",
    "StoreForbiddenError",
    "StoreRefusedError",
    "StoreUnavailableError",
    "default_prefixes",
    "fetch",
    "offload",
]

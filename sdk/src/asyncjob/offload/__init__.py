"""Payloads and results that are too large for the job: where they lie, and how they get there.

Knows nothing of jobs' rules or of Kubernetes; worker, gateway and client read and write alike.
"""

from asyncjob.offload.addresses import Address, AllowList
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
from asyncjob.offload.exchange import fetch, offload
from asyncjob.offload.naming import default_prefixes
from asyncjob.offload.store import Store

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

"""Keeps local addresses inside their folder, wherever symbolic links lead."""

from collections.abc import Sequence
from pathlib import Path

from asyncjob.offload.addresses import Address
from asyncjob.offload.errors import AddressError


def resolve_within(address: Address, roots: Sequence[Address]) -> str:
    """Return the file that a local address leads to.

    Raises AddressError if that is outside of each of the folders. Whoever may change the folders
    themselves could do so between this and the opening: they have to be the worker's own, or those
    of somebody it trusts.
    """
    real = Path(address.path).resolve()
    if any(real.is_relative_to(Path(root.path).resolve()) for root in roots):
        return str(real)
    raise AddressError(f"{address} leads out of its folder by a symbolic link")

"""What can be done in a namespace on behalf of a caller."""

from asyncjob_gateway.operations.operations import Operations

__all__ = ["Operations"]

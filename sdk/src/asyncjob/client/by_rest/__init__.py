"""The operations of a client by REST, over a gateway. They neither send nor sleep."""

from asyncjob.client.by_rest.operations import RestOperations

__all__ = ["RestOperations"]

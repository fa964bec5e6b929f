"""The operations of a client by REST, over a gateway. Sans-IO: sync and async clients drive them."""

from asyncjob.client.by_rest.operations import RestOperations

__all__ = ["RestOperations"]

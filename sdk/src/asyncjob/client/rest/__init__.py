"""The operations of a client by REST, through a gateway. Sans-IO: they neither send nor sleep."""

from asyncjob.client.rest.operations import RestOperations

__all__ = ["RestOperations"]

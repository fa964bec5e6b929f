"""Finds etcd, kube-apiserver, kube-controller-manager and kubectl, or makes them."""

from asyncjob_dev.binaries.pins import TOOLS
from asyncjob_dev.binaries.resolve import Binary, Resolver, default_resolver

__all__ = ["TOOLS", "Binary", "Resolver", "default_resolver", "resolve"]


def resolve(tool: str) -> Binary:
    """Return one of `TOOLS`, ready to run, with this process's resolver."""
    return default_resolver().resolve(tool)

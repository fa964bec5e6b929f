"""A real control plane as plain processes."""

from asyncjob_dev.controlplane.options import DEFAULT_CONTROLLERS, ControlPlaneOptions
from asyncjob_dev.controlplane.plane import ControlPlane

__all__ = ["DEFAULT_CONTROLLERS", "ControlPlane", "ControlPlaneOptions"]

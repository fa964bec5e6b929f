"""A real node with real pods on this machine: Linux, root, no container engine.

Everything of a node lives in network, mount and process namespaces of its own, so the kernel takes
it all away when the first process in there ends, however that came. Knows nothing of asyncjob.
"""

from asyncjob_dev.node.node import Node

__all__ = ["Node"]

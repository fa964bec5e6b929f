"""Which addresses a node has. Pure.

Each node takes a network of its own, so that several stand side by side and the machine itself can
route to their pods and Services. What the machine already routes elsewhere is left alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from asyncjob_dev.node.errors import NoFreeBlockError

FIRST_NETWORK, LAST_NETWORK = 208, 239


@dataclass(frozen=True)
class NodeNetwork:
    """The network 10.<number>.0.0/16 and what it is cut into."""

    number: int

    @property
    def whole(self) -> IPv4Network:
        """All of it: what the machine routes to the node."""
        return IPv4Network(f"10.{self.number}.0.0/16")

    @property
    def services(self) -> IPv4Network:
        """Where Services have their addresses."""
        return IPv4Network(f"10.{self.number}.0.0/20")

    @property
    def pods(self) -> IPv4Network:
        """Where pods have theirs."""
        return IPv4Network(f"10.{self.number}.64.0/18")

    @property
    def link(self) -> IPv4Network:
        """The cable between machine and node."""
        return IPv4Network(f"10.{self.number}.255.0/30")

    @property
    def machine(self) -> IPv4Address:
        """The machine's end of it."""
        return self.link[1]

    @property
    def node(self) -> IPv4Address:
        """The node's end: its address, and that of its API server and DNS."""
        return self.link[2]

    @property
    def device(self) -> str:
        """The machine's network device."""
        return f"ajnode{self.number}"


def choose_network(taken: Iterable[IPv4Network]) -> NodeNetwork:
    """Return the first block that overlaps with nothing; raises NoFreeBlockError."""
    known = list(taken)
    blocks = [NodeNetwork(number) for number in range(FIRST_NETWORK, LAST_NETWORK + 1)]
    for block in blocks:
        if not any(block.whole.overlaps(other) for other in known):
            return block
    raise NoFreeBlockError(str(blocks[0].whole), str(blocks[-1].whole))

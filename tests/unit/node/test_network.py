"""Which network a node takes."""

from ipaddress import IPv4Network

import pytest

from asyncjob_dev.errors import NoFreeBlockError
from asyncjob_dev.node.plan import FIRST_NETWORK, LAST_NETWORK, NodeNetwork, choose_network


def test_the_first_network_that_nothing_else_uses_is_taken() -> None:
    assert choose_network([]) == NodeNetwork(FIRST_NETWORK)
    taken = [
        IPv4Network(f"10.{FIRST_NETWORK}.3.0/24"),
        IPv4Network(f"10.{FIRST_NETWORK + 1}.255.1/32"),
    ]
    assert choose_network(taken) == NodeNetwork(FIRST_NETWORK + 2)


def test_a_route_that_covers_them_all_leaves_none() -> None:
    with pytest.raises(
        NoFreeBlockError, match=rf"10\.{FIRST_NETWORK}\.0\.0/16 and 10\.{LAST_NETWORK}\.0\.0/16"
    ):
        choose_network([IPv4Network("10.0.0.0/8")])


def test_services_pods_and_the_link_share_the_block_and_nothing_else() -> None:
    block = NodeNetwork(FIRST_NETWORK)
    parts = [block.services, block.pods, block.link]
    assert all(part.subnet_of(block.whole) for part in parts)
    assert not any(a.overlaps(b) for a in parts for b in parts if a is not b)
    assert {block.machine, block.node} == set(block.link.hosts())


def test_a_network_devices_name_fits_the_kernel() -> None:
    assert len(NodeNetwork(LAST_NETWORK).device) <= 15

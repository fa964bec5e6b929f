"""What the node's programs are told."""

import tomllib
from pathlib import Path

import pytest

from asyncjob_dev.node import configs, toml
from asyncjob_dev.node.errors import NodeNameError
from asyncjob_dev.node.layout import Layout, nodes_dir
from asyncjob_dev.node.network import Block
from asyncjob_dev.node.plan import Plan, load, save
from asyncjob_dev.node.resident import Watch, plane_options

BLOCK = Block(210)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path, "dev")
    made.make()
    return made


def test_containerds_configuration_is_read_back_as_it_was(layout: Layout) -> None:
    document = configs.containerd(layout, may_raise_oom_priority=True)
    assert tomllib.loads(toml.dumps(document)) == document


@pytest.mark.parametrize("may", [True, False])
def test_without_the_right_to_lower_it_pods_keep_their_oom_score(
    layout: Layout, *, may: bool
) -> None:
    document = configs.containerd(layout, may_raise_oom_priority=may)
    runtime = document["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["restrict_oom_score_adj"] is not may


def test_pods_ask_the_node_for_names_and_count_in_its_own_cgroup(layout: Layout) -> None:
    told = configs.kubelet(layout, BLOCK)
    assert told["clusterDNS"] == [str(BLOCK.node)]
    assert told["cgroupRoot"] == f"/{layout.cgroup}"
    assert f"bind {BLOCK.node}\n" in configs.corefile(layout, BLOCK)


def test_pods_and_services_have_the_blocks_addresses(layout: Layout) -> None:
    plugin = configs.cni(BLOCK)["plugins"][0]
    assert plugin["ipam"]["ranges"] == [[{"subnet": str(BLOCK.pods)}]]
    assert configs.kube_proxy(layout, BLOCK)["clusterCIDR"] == str(BLOCK.pods)
    assert plane_options(layout, BLOCK).service_cidr == str(BLOCK.services)


def test_the_machines_connection_tables_are_left_alone(layout: Layout) -> None:
    assert configs.kube_proxy(layout, BLOCK)["conntrack"] == {"maxPerCore": 0, "min": 0}


@pytest.mark.parametrize("name", ["", "Dev", "../x", "-a", "a" * 21, "a.b"])
def test_a_name_that_fits_no_cgroup_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NodeNameError, match="1 to 20 lower-case letters"):
        Layout(tmp_path, name)


def test_nodes_of_one_name_in_two_caches_own_different_things(tmp_path: Path) -> None:
    one, other = Layout(tmp_path / "one", "dev"), Layout(tmp_path / "other", "dev")
    assert one.owner.startswith("asyncjob-node-dev-")
    assert one.owner != other.owner


def test_nodes_live_in_the_cache() -> None:
    assert nodes_dir({"ASYNCJOB_CACHE": "/a"}) == Path("/a/nodes")


def test_a_plan_is_read_back_as_it_was_and_none_is_none(layout: Layout) -> None:
    assert load(layout.plan) is None
    plan = Plan(BLOCK, {"kubelet": "/x/kubelet"})
    save(layout.plan, plan)
    assert load(layout.plan) == plan


def test_each_step_is_timed_from_the_one_before() -> None:
    times = iter([1.0, 3.0, 3.5])
    watch = Watch(lambda: next(times))
    watch.lap("first")
    watch.lap("second")
    assert watch.seconds == {"first": 2.0, "second": 0.5}

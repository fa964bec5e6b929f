"""What the node's programs are told."""

import tomllib
from pathlib import Path

import pytest

from asyncjob_dev.errors import NodeNameError
from asyncjob_dev.node import components
from asyncjob_dev.node.daemon import StepTimer, plane_options
from asyncjob_dev.node.plan import NodeNetwork, NodePaths, NodePlan, load_plan, nodes_dir, save_plan

BLOCK = NodeNetwork(210)


@pytest.fixture
def layout(tmp_path: Path) -> NodePaths:
    made = NodePaths(tmp_path, "dev")
    made.make()
    return made


def test_containerds_configuration_names_the_nodes_folders(layout: NodePaths) -> None:
    document = tomllib.loads(components.containerd_config(layout, may_raise_oom_priority=True))
    runtime = document["plugins"]["io.containerd.cri.v1.runtime"]
    assert document["root"] == str(layout.containerd)
    assert runtime["cni"]["conf_dir"] == str(layout.config / "cni")
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is False


@pytest.mark.parametrize("may", [True, False])
def test_without_the_right_to_lower_it_pods_keep_their_oom_score(
    layout: NodePaths, *, may: bool
) -> None:
    document = tomllib.loads(components.containerd_config(layout, may_raise_oom_priority=may))
    runtime = document["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["restrict_oom_score_adj"] is not may


def test_pods_ask_the_node_for_names_and_count_in_its_own_cgroup(layout: NodePaths) -> None:
    told = components.kubelet_config(layout, BLOCK)
    assert told["clusterDNS"] == [str(BLOCK.node)]
    assert told["cgroupRoot"] == f"/{layout.cgroup}"
    assert f"bind {BLOCK.node}\n" in components.corefile(layout, BLOCK)


def test_pods_and_services_have_the_blocks_addresses(layout: NodePaths) -> None:
    plugin = components.cni_config(BLOCK)["plugins"][0]
    assert plugin["ipam"]["ranges"] == [[{"subnet": str(BLOCK.pods)}]]
    assert components.kube_proxy_config(layout, BLOCK)["clusterCIDR"] == str(BLOCK.pods)
    assert plane_options(layout, BLOCK).service_cidr == str(BLOCK.services)


def test_the_machines_connection_tables_are_left_alone(layout: NodePaths) -> None:
    assert components.kube_proxy_config(layout, BLOCK)["conntrack"] == {"maxPerCore": 0, "min": 0}


@pytest.mark.parametrize("name", ["", "Dev", "../x", "-a", "a" * 21, "a.b"])
def test_a_name_that_fits_no_cgroup_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NodeNameError, match="1 to 20 lower-case letters"):
        NodePaths(tmp_path, name)


def test_nodes_of_one_name_in_two_caches_own_different_things(tmp_path: Path) -> None:
    one, other = NodePaths(tmp_path / "one", "dev"), NodePaths(tmp_path / "other", "dev")
    assert one.owner.startswith("asyncjob-node-dev-")
    assert one.owner != other.owner


def test_nodes_live_in_the_cache() -> None:
    assert nodes_dir({"ASYNCJOB_CACHE": "/a"}) == Path("/a/nodes")


def test_a_plan_is_read_back_as_it_was_and_none_is_none(layout: NodePaths) -> None:
    assert load_plan(layout.plan) is None
    plan = NodePlan(BLOCK, {"kubelet": "/x/kubelet"})
    save_plan(layout.plan, plan)
    assert load_plan(layout.plan) == plan


def test_each_step_is_timed_from_the_one_before() -> None:
    times = iter([1.0, 3.0, 3.5])
    watch = StepTimer(lambda: next(times))
    watch.lap("first")
    watch.lap("second")
    assert watch.seconds == {"first": 2.0, "second": 0.5}

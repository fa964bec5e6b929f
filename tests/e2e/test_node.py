"""The node itself: several stand side by side, and none leaves anything behind, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asyncjob_dev.binaries import resolve
from asyncjob_dev.node import Node, host
from asyncjob_dev.node.components import PAUSE_IMAGE
from asyncjob_dev.node.host import cgroup_roots, routed_networks
from asyncjob_dev.node.plan import NodeNetwork, NodePaths, NodePlan, load_plan, save_plan
from asyncjob_dev.node.programs import missing_requirements
from e2e.cluster import until
from support.processes.signals import ignoring

LACKS = missing_requirements(os.environ)
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300, func_only=True),
    pytest.mark.skipif(bool(LACKS), reason=f"no node can run here: {'; '.join(LACKS)}"),
]

COMMAND = [sys.executable, "-m", "asyncjob_dev", "node"]
NAME = "--name=by-hand"
STARTER = """
import sys, time
from asyncjob_dev.node import Node
with Node(sys.argv[1]):
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Give nodes a folder of their own, with the programs of the usual cache."""
    usual = Path(resolve("pause").path).parents[2]
    (tmp_path / "cache").mkdir()
    for folder in ("bin", "locks"):
        (tmp_path / "cache" / folder).symlink_to(usual / folder)
    return {**os.environ, "ASYNCJOB_CACHE": str(tmp_path / "cache")}


def test_two_nodes_stand_side_by_side_and_leave_nothing(environ: dict[str, str]) -> None:
    with Node("one", environ) as one, Node("two", environ) as two:
        blocks = [block_of(one), block_of(two)]
        assert node_names(one) == node_names(two) == ["node"]
        run_a_pod(one)
        kubectl(two, "create", "namespace", "only-here")
        assert "only-here" not in kubectl(one, "get", "namespaces")
        assert all(traces(node, block) for node, block in zip((one, two), blocks, strict=True))
    assert len(set(blocks)) == 2
    assert [*traces(one, blocks[0]), *traces(two, blocks[1])] == []


def test_a_killed_starter_takes_its_node_along_and_the_next_start_tidies_up(
    environ: dict[str, str],
) -> None:
    command = [sys.executable, "-c", STARTER, "victim"]
    victim = Node("victim", environ)
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout
        assert starter.stdout.readline() == "ready\n"
        block = block_of(victim)
        run_a_pod(victim)
        starter.kill()
    until(lambda: not processes(victim), 20.0, lambda: f"left: {processes(victim)}")
    assert not victim.is_up
    assert victim.layout.root.exists()
    with Node("next", environ):
        assert traces(victim, block) in ([], [str(block.whole)])  # the next one's, by then


def test_the_dead_do_not_take_away_what_another_has_by_now(environ: dict[str, str]) -> None:
    with Node("living", environ) as living:
        dead = NodePaths(living.layout.nodes, "dead")
        dead.make()
        save_plan(dead.plan, NodePlan(block_of(living), {}))
        host.remove_dead_nodes(living.layout.nodes)
        assert not dead.root.exists()
        assert node_names(living) == ["node"]


def test_the_command_line_brings_a_node_up_and_down_again(environ: dict[str, str]) -> None:
    node = Node("by-hand", environ)
    up = command_line(environ, "up")
    assert (up.returncode, up.stdout.strip()) == (0, str(node.kubeconfig)), up.stderr
    block = block_of(node)
    again = command_line(environ, "up")
    assert again.returncode == 1
    assert "take it down first" in again.stderr
    assert node_names(node) == ["node"]
    (killed,) = processes(node, "/kubelet")
    os.kill(int(killed), signal.SIGKILL)
    until(lambda: processes(node, "/kubelet") not in ([], [killed]), 20.0, lambda: "no kubelet")
    status = command_line(environ, "status")
    assert (status.returncode, status.stdout.strip()) == (0, str(node.kubeconfig))
    down = command_line(environ, "down")
    assert (down.returncode, down.stdout) == (0, "taken down\n"), down.stderr
    assert traces(node, block) == []
    assert command_line(environ, "status").returncode == 1


def test_an_interrupted_start_leaves_nothing(environ: dict[str, str]) -> None:
    node = Node("by-hand", environ)
    command = [*COMMAND, "up", NAME]
    with ignoring(signal.SIGINT), subprocess.Popen(command, env=environ, text=True) as starter:
        try:
            until(node.layout.pid.exists, 60.0, lambda: "it has not begun")
            block = block_of(node)
            starter.send_signal(signal.SIGINT)
            assert starter.wait(60) == 130
        except BaseException:
            # Nothing else would take down what it has started: it is meant to outlive it.
            starter.kill()
            node.stop()
            raise
    assert traces(node, block) == []


def command_line(environ: dict[str, str], verb: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, verb, NAME]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def block_of(node: Node) -> NodeNetwork:
    plan = load_plan(node.layout.plan)
    assert plan
    return plan.block


def node_names(node: Node) -> list[str]:
    return kubectl(node, "get", "nodes", "--output=jsonpath={.items[*].metadata.name}").split()


def run_a_pod(node: Node) -> None:
    kubectl(node, "run", "pause", f"--image={PAUSE_IMAGE}", "--image-pull-policy=Never")
    kubectl(node, "wait", "--for=condition=Ready", "pod/pause", "--timeout=60s")


def kubectl(node: Node, *arguments: str) -> str:
    command = [str(resolve("kubectl").path), f"--kubeconfig={node.kubeconfig}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def traces(node: Node, block: NodeNetwork) -> list[str]:
    """Return what is left of a node: files, cgroups, mounts, processes, routes."""
    root = node.layout.root
    paths = [root, *(path / node.layout.cgroup for path in cgroup_roots())]
    found = [str(path) for path in paths if path.exists()]
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if str(root) in line]
    found += [f"process {pid}" for pid in processes(node)]
    return [*found, *(str(network) for network in routed_networks() if network == block.whole)]


def processes(node: Node, program: str = "") -> list[str]:
    """Return the processes that see the node's folder mounted somewhere: all that are in it."""
    root = str(node.layout.root)
    inside = [path for path in Path("/proc").glob("[0-9]*") if root in told(path, "mountinfo")]
    return [path.name for path in inside if told(path, "cmdline").split("\0")[0].endswith(program)]


def told(process: Path, file: str) -> str:
    try:
        return (process / file).read_text()
    except OSError:
        return ""

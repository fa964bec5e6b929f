"""Free ports."""

import os
import random
import socket
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from asyncjob_dev import ports
from asyncjob_dev.errors import NoFreePortError


def test_ports_are_different_and_can_be_bound() -> None:
    found = ports.free_ports(5)
    assert len(set(found)) == 5
    assert all(ports.is_free(port) for port in found)


def test_a_port_that_is_listened_on_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert not ports.is_free(taken.getsockname()[1])


def test_taken_ports_are_passed_over(tmp_path: Path) -> None:
    expected = ports.free_ports(2, random.Random(7), tmp_path / "a")
    with socket.create_server(("127.0.0.1", expected[0])):
        assert ports.free_ports(1, random.Random(7), tmp_path / "b") == expected[1:]


def test_what_a_process_was_given_no_other_gets_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "ports"
    first = ports.free_ports(3, random.Random(7), kept)
    assert not set(first) & set(ports.free_ports(3, random.Random(7), kept))
    later = ports._boottime() + ports.RESERVED_SECONDS
    monkeypatch.setattr(ports, "_boottime", lambda: later)
    assert ports.free_ports(3, random.Random(7), kept) == first


def test_the_port_that_a_running_process_was_given_no_other_gets_before_it_is_bound(
    tmp_path: Path,
) -> None:
    kept, (port,) = tmp_path / "ports", ports.free_ports(1)
    script = f"""if True:
        from pathlib import Path
        from asyncjob_dev import ports
        print(ports.reserve_port({port}, Path({str(kept)!r})), flush=True)
        input()
    """
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=PIPE, stdout=PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert not ports.reserve_port(port, kept)
        other.communicate("\n")
    # It has ended: whoever starts again at once finds its address as it was.
    assert ports.reserve_port(port, kept)
    assert ports.reserve_port(port, kept)
    with socket.create_server(("127.0.0.1", port)):
        assert not ports.reserve_port(port, kept)


def test_a_process_that_has_ended_holds_no_port_though_nobody_has_waited_for_it(
    tmp_path: Path,
) -> None:
    kept, (port,) = tmp_path / "ports", ports.free_ports(1)
    script = f"from asyncjob_dev.ports import *; reserve_port({port}, Path({str(kept)!r}))"
    with subprocess.Popen([sys.executable, "-c", script], stdout=PIPE) as other:
        assert other.stdout is not None
        other.stdout.read()  # it has closed its output: it ends
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert str(other.pid) in kept.read_text()
        assert ports.reserve_port(port, kept)


@pytest.mark.parametrize("content", ["", '{"200', "[]", '{"a": 1}', '{"20000": null}'])
def test_reservations_that_cannot_be_read_are_none(tmp_path: Path, content: str) -> None:
    kept = tmp_path / "ports"
    kept.write_text(content)
    assert len(ports.free_ports(2, reservations=kept)) == 2


def test_without_a_writable_cache_ports_are_given_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert len(ports.free_ports(2, reservations=tmp_path / "file" / "ports")) == 2


def test_ports_lie_below_those_of_outgoing_connections(tmp_path: Path) -> None:
    kernel = tmp_path / "range"
    kernel.write_text("25000\t60999\n")
    assert ports._bounds(kernel) == (20000, 25000)
    kernel.write_text("1024\t60999\n")
    assert ports._bounds(kernel) == (20000, 32000)
    assert ports._bounds(tmp_path / "absent") == (20000, 32000)


def test_a_machine_without_a_free_port_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda _port: False)
    with pytest.raises(NoFreePortError, match="no 3 free ports on"):
        ports.free_ports(3)

"""CPU and memory out of /proc."""

import os
import subprocess
import sys

import pytest

from asyncjob_bench.errors import BenchError
from asyncjob_bench.harness import procfs
from asyncjob_bench.harness.procfs import ProcessStat, machine_ticks, memory_mib, with_descendants

STAT = "42 (a (nasty) name) S 7 42 42 0 -1 4194560 9 0 0 0 100 20 3 4 20 0 1 0 5 6 7"


def test_ticks_include_those_of_children_that_have_ended() -> None:
    assert ProcessStat.of(STAT) == ProcessStat(parent=7, ticks=127)


def test_a_machine_is_busy_when_it_neither_idles_nor_waits() -> None:
    text = "cpu  100 10 50 800 40 0 5 15 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
    assert machine_ticks(text) == (180, 1020)


def test_memory_is_shown_in_mib() -> None:
    text = "Name:\tetcd\nVmHWM:\t  4096 kB\nVmRSS:\t  2048 kB\n"
    assert (memory_mib(text), memory_mib(text, "VmHWM")) == (2.0, 4.0)


def test_a_missing_line_is_named() -> None:
    with pytest.raises(BenchError, match="no VmRSS"):
        memory_mib("Name:\tkernel\n")


def test_a_program_that_is_gone_has_used_nothing() -> None:
    assert procfs.usage({"nobody": [2**22 + 1]}).programs == {"nobody": 0}


def test_a_process_is_charged_with_what_its_children_use() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10**7))'])"
    before = procfs.usage({"us": [os.getpid()]})
    subprocess.run([sys.executable, "-c", code], check=True)
    used = procfs.usage({"us": [os.getpid()]}) - before
    assert 0 < used.programs["us"] <= used.busy + 0.05
    assert used.available > 0


def test_a_family_is_a_process_with_its_children_and_theirs() -> None:
    stats = {1: ProcessStat(0, 9), 2: ProcessStat(1, 9), 3: ProcessStat(2, 9), 4: ProcessStat(0, 9)}
    assert with_descendants([1], stats) == {1, 2, 3}
    assert with_descendants([2, 4, 5], stats) == {2, 3, 4}


def test_this_process_occupies_memory() -> None:
    assert 0 < procfs.resident_mib(os.getpid()) <= procfs.peak_mib(os.getpid())

"""The chart's options and those of the programs: the same names, and the same defaults but few."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import click
import pytest
import yaml

from support.cluster.charts import CHART

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())


@dataclass(frozen=True)
class Program:
    """A program, where its options are in the values, and what the chart sets by other means."""

    module: str
    options: Mapping[str, Any]
    elsewhere: frozenset[str]
    differs: Mapping[str, Any]


PROGRAMS = (
    Program(
        "asyncjob_operator.cli",
        VALUES["operator"]["options"],
        frozenset({"namespace", "kubeconfig", "identity"}),
        {"metricsPort": 8080, "healthPort": 8081, "logFormat": "json", "leaseNamespace": ""},
    ),
    Program(
        "asyncjob_worker.cli",
        {**VALUES["workerDefaults"]["options"], "queue": "default"},
        frozenset(
            {"app", "kubeconfig", "namespace", "podName", "podUid", "allowUnenforced", "reload"}
        ),
        {
            "healthPort": 8081,
            "logFormat": "json",
            "concurrency": None,
            "operatorNamespace": "",
            "operatorLease": "",
            "offloadUrl": "",
            "offloadOptions": {},
            "payloadPrefix": [],
        },
    ),
    Program(
        "asyncjob_gateway.cli",
        VALUES["gateway"]["options"],
        frozenset({"namespace", "kubeconfig", "tlsCert", "tlsKey", "open"}),
        {
            "metricsPort": 9090,
            "logFormat": "json",
            "drain": 5,
            "audience": [],
            "forwardHeader": [],
            "corsOrigin": [],
        },
    ),
)
THERE = [program for program in PROGRAMS if find_spec(program.module)]


def value_name(item: click.Parameter) -> str:
    """Return what a program's option is called in the chart: as on the command line."""
    first, *rest = item.opts[0].lstrip("-").split("-")
    return first + "".join(word.capitalize() for word in rest)


@pytest.mark.parametrize("program", THERE, ids=lambda program: program.module)
def test_the_chart_has_every_option_and_no_other(program: Program) -> None:
    command = import_module(program.module).run
    flags = {value_name(item): item for item in command.params if isinstance(item, click.Option)}

    assert {*program.options} == {*flags} - program.elsewhere


@pytest.mark.parametrize("program", THERE, ids=lambda program: program.module)
def test_defaults_are_the_programs_own_but_for_those_named_here(program: Program) -> None:
    command = import_module(program.module).run
    own = {value_name(item): item.default for item in command.params}
    expected = {name: program.differs.get(name, own[name]) for name in program.options}

    assert dict(program.options) == expected
    assert all(own[name] != value for name, value in program.differs.items())

"""Options of the programs: names of their variables, and the order in which they are shown."""

import click
import pytest
from click.testing import CliRunner

from asyncjob.programs.options import (
    log_format_option,
    log_level_option,
    metrics_port_option,
    program_option,
    with_options,
)


@click.command()
@with_options(
    (
        program_option("PROGRAM", "--stop-wait", "stop_seconds", default=1.0),
        program_option("PROGRAM", "--elect/--no-elect", default=True),
    ),
    (program_option("PROGRAM", "--pod-name", envvar="POD_NAME"),),
    (
        metrics_port_option("PROGRAM", default=9090),
        log_format_option("PROGRAM", help="Of lines."),
        log_level_option("PROGRAM"),
    ),
)
def program(**given: object) -> None:
    click.echo(sorted(given.items()))


@pytest.mark.parametrize(
    ("variable", "value", "shown"),
    [
        ("PROGRAM_STOP_WAIT", "2.5", "('stop_seconds', 2.5)"),
        ("PROGRAM_ELECT", "false", "('elect', False)"),
        ("POD_NAME", "worker-0", "('pod_name', 'worker-0')"),
        ("PROGRAM_METRICS_PORT", "0", "('metrics_port', 0)"),
        ("PROGRAM_LOG_FORMAT", "json", "('log_format', 'json')"),
        ("PROGRAM_LOG_LEVEL", "debug", "('log_level', 'DEBUG')"),
    ],
)
def test_each_option_is_set_by_a_variable_named_after_its_flag(
    variable: str, value: str, shown: str
) -> None:
    assert shown in CliRunner().invoke(program, env={variable: value}).output
    assert shown not in CliRunner().invoke(program).output


def test_a_flag_goes_before_the_variable() -> None:
    given = CliRunner().invoke(program, ["--no-elect"], env={"PROGRAM_ELECT": "true"})
    assert "('elect', False)" in given.output


def test_options_are_shown_in_the_order_of_their_groups_with_their_defaults() -> None:
    output = CliRunner().invoke(program, ["--help"]).output
    flags = [
        "--stop-wait",
        "--elect",
        "--pod-name",
        "--metrics-port",
        "--log-format",
        "--log-level",
    ]
    places = [output.index(flag) for flag in flags]
    assert places == sorted(places)
    assert "[default: 9090" in output

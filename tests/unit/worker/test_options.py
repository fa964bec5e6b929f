"""The worker's options: each documented with its variable and default, and taken into settings."""

from dataclasses import fields
from pathlib import Path

import click
import pytest

from asyncjob_dev.reference.options import DocumentedOption, documented_options
from asyncjob_worker.cli import run
from asyncjob_worker.options import PREFIX
from asyncjob_worker.settings import Settings

PAGE = (Path(__file__).parents[3] / "docs/reference/worker.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("<!-- generated: worker.options -->")[2].partition("<!-- /generated -->")[0]
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in TABLE.splitlines()
    if line.startswith("| `--")
]
OPTIONS = list(documented_options(run))

NOT_SETTINGS = {
    "kubeconfig",
    "namespace",
    "pod_name",
    "pod_uid",
    "allow_unenforced",
    "reload",
}
OF_STORES = {
    "offload_url",
    "offload_options",
    "offload_limit",
    "offload_timeout",
    "payload_prefix",
}
"""They make one setting, `offload`."""


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.flag)
def test_every_option_is_documented_with_its_variable_and_default(option: DocumentedOption) -> None:
    [row] = [row for row in ROWS if row[0] == f"`{option.flag}`"]
    assert row[1:] == [f"`{option.variable}`", option.default, option.meaning]
    assert option.default not in {"", "`None`"}
    assert option.meaning


def test_nothing_is_documented_that_there_is_not() -> None:
    assert [row[0] for row in ROWS] == [f"`{option.flag}`" for option in OPTIONS]


def test_every_option_is_a_setting_or_known_not_to_be_one() -> None:
    names = {param.name for param in run.params if isinstance(param, click.Option)}
    settings = {item.name for item in fields(Settings)}
    assert names - settings == NOT_SETTINGS | OF_STORES


def test_variables_are_those_that_the_command_line_reads() -> None:
    documented_as = {option.flag: option.variable for option in OPTIONS}
    assert documented_as["--stall-limit"] == f"{PREFIX}_STALL_LIMIT"
    assert documented_as["--pod-name"] == "POD_NAME"
    context = run.make_context("run", ["x:app"])
    assert context.params["health_port"] == Settings().health_port


def test_what_is_given_becomes_settings_by_name() -> None:
    settings = Settings.from_options(
        {"queue": "q", "grace": 1.0, "kubeconfig": "k", "reload": False}
    )
    assert (settings.queue, settings.grace, settings.require_policy) == ("q", 1.0, True)
    assert not Settings.from_options({"allow_unenforced": True}).require_policy

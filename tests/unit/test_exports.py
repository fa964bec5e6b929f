"""What `import asyncjob` offers: all of it, and nothing before it is asked for."""

import subprocess
import sys

import pytest

import asyncjob


def test_everything_exported_can_be_had() -> None:
    assert set(asyncjob.__all__) <= set(dir(asyncjob))
    for name in asyncjob.__all__:
        assert getattr(asyncjob, name) is not None


def test_every_export_but_the_version_has_a_home() -> None:
    assert set(asyncjob._MODULES) == set(asyncjob.__all__) - {"__version__"}


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Wroker'"):
        getattr(asyncjob, "Wroker")  # noqa: B009 - a type checker knows better


def test_importing_the_package_imports_no_model_and_no_client() -> None:
    script = "import sys, asyncjob; print(*sorted(set(sys.modules) & {'pydantic', 'aiohttp'}))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert found.stdout.split() == []

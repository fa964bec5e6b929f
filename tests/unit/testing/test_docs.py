"""The examples of the how-to are true."""

import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "test-handlers.md"
CODE = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
NAMES = re.findall(r"def (test_\w+)", CODE)


@pytest.fixture(scope="module")
def examples() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "examples"}
    exec(compile(CODE, str(PAGE), "exec"), names)
    return names


def test_the_page_has_examples() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 9


@pytest.mark.parametrize("name", NAMES)
def test_an_example_of_the_page_passes(name: str, examples: dict[str, Any]) -> None:
    example = examples[name]
    if inspect.iscoroutinefunction(example):
        asyncio.run(example())
    else:
        example()

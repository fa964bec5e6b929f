"""The page on the examples as its reader follows it: each command, and what it is said to print."""

import pytest

from support.docs.recipe_runs import Recipe
from support.processes.workers import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(120)]


@pytest.mark.parametrize("recipe", [str(ROOT / "examples/README.md")], indirect=True, ids=["page"])
def test_the_page_on_the_examples_says_what_is_seen(recipe: Recipe) -> None:
    recipe.start_all()
    recipe.follow()

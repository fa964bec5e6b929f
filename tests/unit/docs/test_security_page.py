"""Each test that the page on security names is there, and each theft that it speaks of is tried."""

import re
from pathlib import Path

import pytest

from asyncjob_dev.reference import installation
from asyncjob_dev.reference.blocks import OpenBlockError, names

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/explanation/security.md"
TEXT = PAGE.read_text(encoding="utf-8")
LINKS = re.findall(r"\[`([^`]+)`\]\((\.\./[^)#]+)\)", TEXT)

ROLE = """\
# Of nobody.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: owner
rules:
# See it,
# and keep it.
- apiGroups: ["", example.org]
  resources: [things, keys]
  verbs: [get, patch]
  resourceNames: [one]
"""


@pytest.mark.parametrize(("said", "where"), LINKS)
def test_what_is_named_is_there(said: str, where: str) -> None:
    file = (PAGE.parent / where).resolve()
    assert file.exists()
    if said.startswith("test_"):
        assert re.search(rf"def {said}\(", file.read_text()), said
    elif file.suffix == ".py" and "/" not in said:
        assert f'"{said}"' in file.read_text(), said


def test_there_are_many() -> None:
    assert len(LINKS) > 60


def test_a_rule_is_told_with_its_reason() -> None:
    assert installation.role_section(ROLE).splitlines()[-1] == (
        "| get, patch | `things`, `keys` of example.org, only `one` | See it, and keep it. |"
    )


def test_the_page_has_the_tables_of_all_rights() -> None:
    assert names(TEXT) == ["security.rights"]
    assert installation.role_rights() in TEXT


def test_a_block_that_would_never_be_made_again_is_noticed() -> None:
    begun = "<!-- generated: a -->\n<!-- /generated: a -->\n"
    page = f"{begun}<!-- generated: b -->\n<!-- /generated -->\n"
    with pytest.raises(OpenBlockError, match="is missing: a, b"):
        names(page)

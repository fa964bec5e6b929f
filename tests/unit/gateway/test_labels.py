"""Label selectors, as kubectl takes them."""

import pytest

from asyncjob_gateway.cache.listing import parse_label_selector
from asyncjob_gateway.errors import RefusedError

LABELS = {"team": "mail", "tier": "free", "example.com/empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("team=mail", True),
        ("team==mail", True),
        ("team = mail , tier!=paid", True),
        ("team!=mail", False),
        ("absent!=mail", True),
        ("team in (mail,post)", True),
        ("team in (post)", False),
        ("tier notin (paid, gold)", True),
        ("absent notin (a)", True),
        ("team", True),
        ("absent", False),
        ("!absent", True),
        ("!team", False),
        ("example.com/empty=", True),
        ("team in (mail,post),tier=paid", False),
    ],
)
def test_a_selector_matches_as_kubectl_does(text: str, matches: bool) -> None:
    assert parse_label_selector(text, "query.label")(LABELS) is matches


@pytest.mark.parametrize("text", ["", ",", "a=b=c", "a in mail", "=b", "a in (b", "a=b,", "a>1"])
def test_what_is_no_selector_is_refused_by_name(text: str) -> None:
    with pytest.raises(RefusedError) as refused:
        parse_label_selector(text, "query.label")
    assert refused.value.errors[0].field == "query.label"

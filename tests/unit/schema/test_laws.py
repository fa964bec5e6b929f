"""How laws are written and what is made of them."""

import re

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.transitions import EDGES
from asyncjob.models import AsyncJobSpec, AsyncJobStatus
from asyncjob.schema.laws.expressions import all_of, expand, one_of, quote
from asyncjob.schema.laws.law import Law, Write, obeyed
from asyncjob.schema.laws.transitions import PAIR
from asyncjob.schema.laws.wishes import FIXED, WISHES
from asyncjob.schema.laws_page import laws_page
from asyncjob.schema.policies.book import POLICIES
from asyncjob.schema.policies.policy import Policy
from asyncjob.schema.rules import RULES

LAWS = [*(rule.law for rule in RULES), *(law for policy in POLICIES for law in policy.laws)]


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("now.phase", "object.status.phase"),
        ("was.?claim", "oldObject.status.?claim"),
        ("spec_was.type == spec.type", "oldObject.spec.type == object.spec.type"),
        ("dyn(now).?result", "dyn(object.status).?result"),
        ("'now.phase of spec'", "'now.phase of spec'"),
        (r"'it\'s now' + now.a", r"'it\'s now' + object.status.a"),
        ("variables.now", "variables.now"),
        ("now.spec", "object.status.spec"),
    ],
)
def test_short_names_are_written_out_but_not_in_texts_or_fields(short: str, full: str) -> None:
    assert expand(short) == full


def test_texts_are_quoted_for_cel() -> None:
    assert quote("it's") == r"'it\'s'"
    assert one_of(["a", "b"]) == "['a', 'b']"
    assert all_of(["a || b", "c"]) == "(a || b) && (c)"


def test_a_law_demands_of_each_kind_of_write_what_it_says() -> None:
    law = Law("a.b", "A.", {Write.CLAIM: "now.a == 1", Write.STAY: "now.a == was.a"})
    assert law.on(Write.MOVE) == ""
    assert "(object.status.a == 1) : true" in law.expression
    assert law.text == "A. (a.b)"


def test_a_message_carries_the_id_of_its_law() -> None:
    assert Law("a.b", "A.", "true").message_expression == ""
    assert Law("a.b", "A.", "true", "now.a").message_expression == "(object.status.a) + ' (a.b)'"


def test_all_laws_are_checked_together_after_the_kind_of_write_is_known() -> None:
    laws = (
        Law("a", "A.", {Write.CLAIM: "now.a"}),
        Law("b", "B.", {Write.CLAIM: "now.b", Write.STAY: "now.c"}),
    )
    assert obeyed(laws).endswith(
        "? (object.status.a) && (object.status.b) : true) : (object.status.c)"
    )


def test_a_policy_without_a_law_lacks_it_in_its_condition_and_in_its_validations() -> None:
    law, other = (Law(name, name, {Write.STAY: f"now.{name}"}) for name in "ab")
    policy = Policy("p", "P.", (), (), (law, other), hot=True)
    assert "object.status.a" in str(policy.manifests())
    assert "object.status.a" not in str(policy.without("a").manifests())


def test_the_table_of_transitions_is_in_the_rule_edge_by_edge() -> None:
    pairs = {f"'{source}>{target}'" for source in Phase for target in Phase}
    written = {pair for pair in pairs if pair in PAIR.expression}
    assert written == {f"'{edge.source}>{edge.target}'" for edge in EDGES}


def test_each_field_of_a_spec_is_fixed_or_a_wish() -> None:
    fields = {field.alias or name for name, field in AsyncJobSpec.model_fields.items()}
    assert {*FIXED, *WISHES} == fields
    assert not set(FIXED) & set(WISHES)


def test_laws_name_only_fields_that_there_are() -> None:
    fields = {field.alias or name for name, field in AsyncJobStatus.model_fields.items()}
    for law in LAWS:
        for name in re.findall(r"[oO]bject\.status\.\??(\w+)", law.expression):
            assert name in fields, law.id


def test_ids_are_unique_and_say_their_topic() -> None:
    ids = [law.id for law in LAWS]
    assert len(ids) == len(set(ids))
    assert all("." in name for name in ids)


def test_demands_are_sentences() -> None:
    assert all(law.demands.endswith(".") for law in LAWS)


def test_the_page_names_every_law() -> None:
    page = laws_page()
    assert all(f"| `{law.id}` | {law.demands} | " in page for law in LAWS)

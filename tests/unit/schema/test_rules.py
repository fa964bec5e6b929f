"""How rules are written and what is made of them."""

import re

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.transitions import TRANSITIONS
from asyncjob.models import AsyncArrayStatus, AsyncJobSpec, AsyncJobStatus
from asyncjob.rules.job_spec import CONTROL_FIELDS, IMMUTABLE_FIELDS
from asyncjob.rules.policies import POLICIES
from asyncjob.rules.policy import AdmissionPolicy
from asyncjob.rules.rule import (
    Rule,
    StatusWrite,
    all_rules_hold,
    cel_and,
    cel_list,
    cel_string,
    expand_names,
)
from asyncjob.rules.transitions import TRANSITION_PAIR
from asyncjob.schema.crd import CRD_RULES
from asyncjob.schema.manifests import rules_page

RULES = [
    *(rule.rule for rule in CRD_RULES),
    *(rule for policy in POLICIES for rule in policy.rules),
]


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
    assert expand_names(short) == full


def test_texts_are_quoted_for_cel() -> None:
    assert cel_string("it's") == r"'it\'s'"
    assert cel_list(["a", "b"]) == "['a', 'b']"
    assert cel_and(["a || b", "c"]) == "(a || b) && (c)"


def test_a_rule_demands_of_each_kind_of_write_what_it_says() -> None:
    rule = Rule(
        "a.b", "A.", {StatusWrite.CLAIM: "now.a == 1", StatusWrite.SAME_PHASE: "now.a == was.a"}
    )
    assert rule.cel_for(StatusWrite.PHASE_CHANGE) == ""
    assert "(object.status.a == 1) : true" in rule.expression
    assert rule.message_text == "A. (a.b)"


def test_a_message_carries_the_id_of_its_rule() -> None:
    assert Rule("a.b", "A.", "true").message_expression == ""
    assert Rule("a.b", "A.", "true", "now.a").message_expression == "(object.status.a) + ' (a.b)'"


def test_all_rules_are_checked_together_after_the_kind_of_write_is_known() -> None:
    rules = (
        Rule("a", "A.", {StatusWrite.CLAIM: "now.a"}),
        Rule("b", "B.", {StatusWrite.CLAIM: "now.b", StatusWrite.SAME_PHASE: "now.c"}),
    )
    assert all_rules_hold(rules).endswith(
        "? (object.status.a) && (object.status.b) : true) : (object.status.c)"
    )


def test_a_policy_without_a_rule_lacks_it_in_its_condition_and_in_its_validations() -> None:
    rule, other = (Rule(name, name, {StatusWrite.SAME_PHASE: f"now.{name}"}) for name in "ab")
    policy = AdmissionPolicy("p", "P.", (), (), (rule, other), checks_rules_first=True)
    assert "object.status.a" in str(policy.manifests())
    assert "object.status.a" not in str(policy.without("a").manifests())


def test_the_table_of_transitions_is_in_the_rule_row_by_row() -> None:
    pairs = {f"'{source}>{target}'" for source in Phase for target in Phase}
    written = {pair for pair in pairs if pair in TRANSITION_PAIR.expression}
    assert written == {f"'{transition.source}>{transition.target}'" for transition in TRANSITIONS}


def test_each_field_of_a_spec_is_fixed_or_a_control_field() -> None:
    fields = {field.alias or name for name, field in AsyncJobSpec.model_fields.items()}
    assert {*IMMUTABLE_FIELDS, *CONTROL_FIELDS} == fields
    assert not set(IMMUTABLE_FIELDS) & set(CONTROL_FIELDS)


def test_rules_name_only_fields_that_there_are() -> None:
    of_job, of_array = (
        {field.alias or name for name, field in model.model_fields.items()}
        for model in (AsyncJobStatus, AsyncArrayStatus)
    )
    for rule in RULES:
        fields = of_array if rule.id.startswith("array.") else of_job
        for name in re.findall(r"[oO]bject\.status\.\??(\w+)", rule.expression):
            assert name in fields, rule.id


def test_ids_are_unique_and_say_their_topic() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert all("." in name for name in ids)


def test_demands_are_sentences() -> None:
    assert all(rule.description.endswith(".") for rule in RULES)


def test_the_page_names_every_rule() -> None:
    page = rules_page()
    assert all(f"| `{rule.id}` | {rule.description} | " in page for rule in RULES)

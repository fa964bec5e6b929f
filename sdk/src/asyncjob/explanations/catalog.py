"""The whole catalogue: the texts, and what each rule requires, which stands with the rule."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Final

from asyncjob.audit.catalog import AUDIT_RULES, Evidence
from asyncjob.explanations.texts import Explanation, Kind, by_code, pages
from asyncjob.rules.policies import POLICIES
from asyncjob.rules.rule import Rule
from asyncjob.schema.crd import CRD_RULES

_MAX_SUGGESTIONS: Final = 3
_EXIT: Final = "exit-"


@cache
def rules() -> Mapping[str, Rule]:
    """Return every rule of the API server, by its id."""
    own = (rule.rule for rule in CRD_RULES)
    return {rule.id: rule for rule in [*own, *(rule for one in POLICIES for rule in one.rules)]}


@cache
def catalog() -> tuple[Explanation, ...]:
    """Return every entry, in the order of the pages; each rule of a family by itself."""
    return tuple(entry for page in pages() for text in page.entries for entry in _entries(text))


def _entries(text: Explanation) -> Iterator[Explanation]:
    if text.kind is Kind.AUDIT_RULE:
        yield replace(text, means=_audited().get(text.code, ""))
    elif text.kind is not Kind.RULE:
        yield text
    elif not text.is_family:
        yield _with_rule(text)
    else:
        own = by_code(Kind.RULE)
        codes = [code for code in rules() if text.covers(code) and code not in own]
        yield from (_with_rule(text.of_family(code)) for code in codes)


@cache
def _audited() -> Mapping[str, str]:
    """Return what each rule of the audit says, and what it is judged by."""
    return {
        rule.id: rule.description
        if rule.evidence is Evidence.HISTORY
        else f"{rule.description} Takes the {rule.evidence}."
        for rule in AUDIT_RULES
    }


def _with_rule(text: Explanation) -> Explanation:
    rule = rules().get(text.code)
    if rule is None:
        return text
    return replace(text, means=rule.description, status=403 if rule.is_forbidden else 422)


def explain(query: str) -> tuple[Explanation, ...]:
    """Return the entries of a code, several if things of different kinds are called alike.

    It may be written as the message had it: `/problems/no-job`, `(history.grows)`, `4` for the exit
    code, and in another case, unless a code is written just so.
    """
    code = _bare(query)
    exact = tuple(one for one in catalog() if one.code in {code, *_exit_codes(code)})
    return exact or tuple(one for one in catalog() if one.code.lower() == code.lower())


def _bare(query: str) -> str:
    return query.strip(" ().,:;'\"`").rpartition("/")[2].rpartition("#")[2]


def _exit_codes(code: str) -> set[str]:
    if not re.fullmatch(r"\d+", code):
        return set()
    return {one for one in by_code(Kind.EXIT_CODE) if one.endswith(f"{_EXIT}{code}")}


def similar_codes(query: str) -> list[str]:
    """Return the codes that may have been meant, the nearest first."""
    code, known = _bare(query).lower(), {one.code.lower(): one.code for one in catalog()}
    within = [one for one in known if code and code in one]
    near = get_close_matches(code, known, n=_MAX_SUGGESTIONS, cutoff=0.6)
    return [known[one] for one in dict.fromkeys([*near, *within])][:_MAX_SUGGESTIONS]

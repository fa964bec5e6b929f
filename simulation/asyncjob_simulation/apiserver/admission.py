"""Admission policies, as they are stored: which apply to a write, and what they say.

`variables` are put in place of their names before a policy is compiled. So each is evaluated where
it is read, and only there, as a real API server does it. Not here: params, audit annotations,
`matchPolicy`, the warnings of bindings that do not deny, and changes other than the removal of a
part of the object at creation and the label of a shard, whose CEL has functions that only a real
API server knows.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asyncjob.rules.mutation import SHARD_PATCH
from asyncjob.shards import shard_label
from asyncjob_simulation.apiserver.cel import Activation, EvaluationError, authorizer, compiled
from asyncjob_simulation.apiserver.errors import PolicyError, StatusError
from asyncjob_simulation.apiserver.identities import Identity
from asyncjob_simulation.apiserver.rbac import Action, RbacAuthorizer
from asyncjob_simulation.apiserver.resources import ADMISSION_GROUP, Resource
from asyncjob_simulation.apiserver.storage import Storage

Object = dict[str, Any]

POLICIES: Final = (ADMISSION_GROUP, "validatingadmissionpolicies")
BINDINGS: Final = (ADMISSION_GROUP, "validatingadmissionpolicybindings")
MUTATING_POLICIES: Final = (ADMISSION_GROUP, "mutatingadmissionpolicies")
MUTATING_BINDINGS: Final = (ADMISSION_GROUP, "mutatingadmissionpolicybindings")

_CODES: Final = {
    "Invalid": 422,
    "Forbidden": 403,
    "Unauthorized": 401,
    "RequestEntityTooLarge": 413,
}
_VARIABLE: Final = re.compile(r"\bvariables\.([A-Za-z_][A-Za-z0-9_]*)")
_REMOVAL: Final = re.compile(r"\[JSONPatch\{op: 'remove', path: '/(\w+)/(\w+)'\}\]")
_TEXT: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


@dataclass(frozen=True, slots=True)
class Write:
    """A write as policies see it. `name` is empty where it is still to be generated."""

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    object: Object | None
    old: Object | None
    identity: Identity
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Validation:
    """One rule of a policy, with all variables in place."""

    expression: str
    message: str
    message_expression: str
    reason: str


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy with one of its bindings."""

    name: str
    binding: str
    rules: tuple[Mapping[str, Any], ...]
    namespace_selectors: tuple[Mapping[str, Any], ...]
    object_selectors: tuple[Mapping[str, Any], ...]
    conditions: tuple[str, ...]
    validations: tuple[Validation, ...]
    changes: tuple[Callable[[Object], None], ...]
    """What it does to a new object."""

    ignores_errors: bool

    def is_about(self, write: Write, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the policy has anything to say of such writes in such a namespace."""
        return any(_is_about(rule, write) for rule in self.rules) and all(
            _selects(selector, namespace_labels) for selector in self.namespace_selectors
        )

    def selects(self, write: Write) -> bool:
        """Return whether the labels of the object are those that the policy is about."""
        return all(_selects_either(selector, write) for selector in self.object_selectors)

    def applies(self, activation: Activation) -> bool:
        """Return whether its conditions are met; raises EvaluationError."""
        return all(activation.evaluate(compiled(one)) is True for one in self.conditions)

    def refusal(self, activation: Activation) -> tuple[str, str] | None:
        """Return reason and message of the first rule that is broken."""
        try:
            if not self.applies(activation):
                return None
        except EvaluationError as error:
            return None if self.ignores_errors else ("Invalid", f"matchCondition: {error}")
        for rule in self.validations:
            try:
                holds = activation.evaluate(compiled(rule.expression)) is True
            except EvaluationError as error:
                if self.ignores_errors:
                    continue
                return rule.reason, f"expression '{rule.expression}' resulted in error: {error}"
            if not holds:
                return rule.reason, _message(rule, activation)
        return None


def _message(rule: Validation, activation: Activation) -> str:
    if rule.message_expression:
        try:
            words = activation.evaluate(compiled(rule.message_expression))
        except EvaluationError:
            words = None
        if isinstance(words, str) and words.strip():
            return words.strip()
    return rule.message or f"failed expression: {rule.expression}"


class Admission:
    """Changes and judges writes by the policies that are stored and bound."""

    def __init__(self, storage: Storage, authorizer_: RbacAuthorizer) -> None:
        self._authorizer = authorizer_
        self._validating = BoundPolicies(storage, POLICIES, BINDINGS)
        self._mutating = BoundPolicies(storage, MUTATING_POLICIES, MUTATING_BINDINGS)

    def change(self, obj: Object, write: Write, *, is_named: bool) -> None:
        """Change a new object as policies say; `write` is its creation.

        They do not see a name that was generated: on a real API server that comes after them.
        """
        for policy in self._mutating.about(write):
            values = _values(write)
            if not is_named:
                unnamed = {**values["object"]["metadata"], "name": ""}
                values["object"] = {**values["object"], "metadata": unnamed}
            try:
                applies = policy.applies(Activation(values))
            except EvaluationError:
                continue  # all of them ignore errors, or they are not understood
            for change in policy.changes if applies else ():
                change(obj)

    def check(self, write: Write) -> None:
        """Raise StatusError if a policy refuses the write."""
        policies = self._validating.about(write)
        if not policies:
            return
        activation = Activation(_values(write))
        with authorizer(self._asked_by(write.identity)):
            for policy in policies:
                refusal = policy.refusal(activation)
                if refusal is not None:
                    raise _denied(policy, write, *refusal)

    def _asked_by(self, identity: Identity) -> Callable[[Mapping[str, str]], bool]:
        def allows(question: Mapping[str, str]) -> bool:
            part = question.get("subresource")
            resource = question.get("resource", "")
            action = Action(
                verb=question["check"],
                group=question.get("group", ""),
                resource=f"{resource}/{part}" if part else resource,
                namespace=question.get("namespace", ""),
                name=question.get("name", ""),
            )
            return self._authorizer.allows(identity, action)

        return allows


class BoundPolicies:
    """The policies of one kind that are in force: those with a binding."""

    def __init__(
        self, storage: Storage, policies: tuple[str, str], bindings: tuple[str, str]
    ) -> None:
        self._storage = storage
        self._kinds = policies, bindings
        self._ends = (-1, -1)
        self._known: dict[tuple[str, str], Policy] = {}
        self._by_write: dict[tuple[object, ...], list[Policy]] = {}

    def about(self, write: Write) -> list[Policy]:
        """Return those that have anything to say of the write."""
        in_force, labels = self._in_force(), self._namespace_labels(write.namespace)
        key = write.operation, write.resource, write.subresource, tuple(labels.items())
        found = self._by_write.get(key)
        if found is None:
            found = [one for one in in_force if one.is_about(write, labels)]
            self._by_write[key] = found
        return [one for one in found if one.selects(write)]

    def _namespace_labels(self, namespace: str) -> Mapping[str, str]:
        found = self._storage.get(("", "namespaces"), ("", namespace))
        return (found["metadata"].get("labels") or {}) if found else {}

    def _in_force(self) -> Iterable[Policy]:
        policies, bindings = map(self._storage.collection, self._kinds)
        ends = policies.end, bindings.end
        if ends != self._ends:
            self._ends = ends
            known = self._known
            self._known = {}
            self._by_write.clear()
            for key in bindings.keys:
                binding = bindings.objects[key]
                policy = policies.objects.get(("", binding["spec"]["policyName"]))
                if policy is not None:
                    pair = _version(policy), _version(binding)
                    self._known[pair] = known.get(pair) or _policy(policy, binding)
        return self._known.values()


def _version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])


def _policy(policy: Object, binding: Object) -> Policy:
    spec, bound = policy["spec"], binding["spec"]
    if "paramKind" in spec:
        raise PolicyError(f"policy {policy['metadata']['name']} has params, unknown here")
    variables: dict[str, str] = {}
    for one in spec.get("variables") or ():
        variables[one["name"]] = f"({inlined(one['expression'], variables)})"
    matched = spec["matchConstraints"], bound.get("matchResources") or {}
    return Policy(
        name=policy["metadata"]["name"],
        binding=binding["metadata"]["name"],
        rules=tuple(spec["matchConstraints"]["resourceRules"]),
        namespace_selectors=tuple(
            one["namespaceSelector"] for one in matched if one.get("namespaceSelector")
        ),
        object_selectors=tuple(
            one["objectSelector"] for one in matched if one.get("objectSelector")
        ),
        conditions=tuple(one["expression"] for one in spec.get("matchConditions") or ()),
        validations=tuple(
            Validation(
                expression=inlined(one["expression"], variables),
                message=one.get("message", ""),
                message_expression=inlined(one.get("messageExpression", ""), variables),
                reason=one.get("reason", "Invalid"),
            )
            for one in spec.get("validations") or ()
        ),
        changes=tuple(_change(policy, one) for one in spec.get("mutations") or ()),
        ignores_errors=spec.get("failurePolicy") == "Ignore",
    )


def _change(policy: Object, mutation: Object) -> Callable[[Object], None]:
    expression = mutation.get("jsonPatch", {}).get("expression", "")
    if policy["spec"].get("failurePolicy") == "Ignore":
        if found := _REMOVAL.fullmatch(expression):
            return lambda obj: obj[found[1]].pop(found[2], None)
        if expression == SHARD_PATCH:
            return _label_shard
    raise PolicyError(f"policy {policy['metadata']['name']} changes in a way unknown here")


def _label_shard(obj: Object) -> None:
    metadata = obj["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), **shard_label(metadata["name"])}


def inlined(expression: str, variables: Mapping[str, str]) -> str:
    """Return an expression with variables in place of their names, but not inside of texts."""
    parts, at = [], 0
    for text in _TEXT.finditer(expression):
        parts += [_replaced(expression[at : text.start()], variables), text.group()]
        at = text.end()
    return "".join([*parts, _replaced(expression[at:], variables)])


def _replaced(code: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: variables[found.group(1)], code)


def _is_about(rule: Mapping[str, Any], write: Write) -> bool:
    resource = write.resource
    full = f"{resource.plural}/{write.subresource}" if write.subresource else resource.plural
    return (
        (write.operation in rule["operations"] or "*" in rule["operations"])
        and (resource.group in rule["apiGroups"] or "*" in rule["apiGroups"])
        and (resource.version in rule["apiVersions"] or "*" in rule["apiVersions"])
        and (full in rule["resources"] or "*/*" in rule["resources"])
        and (rule.get("scope", "*") != "Namespaced" or resource.namespaced)
    )


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_meets(one, labels) for one in selector.get("matchExpressions") or ())


def _selects_either(selector: Mapping[str, Any], write: Write) -> bool:
    """Return whether the object is selected as it was or as it is to be."""
    versions = (one for one in (write.object, write.old) if one is not None)
    return any(_selects(selector, one["metadata"].get("labels") or {}) for one in versions)


def _meets(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = requirement["key"], requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
    return key not in labels


def _values(write: Write) -> Object:
    schema, resource = write.resource.schema, write.resource
    request = {
        "operation": write.operation,
        "resource": {
            "group": resource.group,
            "version": resource.version,
            "resource": resource.plural,
        },
        "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "subResource": write.subresource,
        "name": write.name,
        "namespace": write.namespace,
        "userInfo": write.identity.user_info(),
        "dryRun": write.dry_run,
    }
    shown = schema.for_rules if schema is not None else lambda obj: obj
    return {
        "object": shown(write.object),
        "oldObject": shown(write.old),
        "request": request,
    }


def _denied(policy: Policy, write: Write, reason: str, message: str) -> StatusError:
    words = (
        f"ValidatingAdmissionPolicy '{policy.name}' with binding '{policy.binding}' denied "
        f"request: {message}"
    )
    what = f'{write.resource.qualified} "{write.name}"' if write.name else write.resource.qualified
    return StatusError(_CODES[reason], reason, f"{what} is forbidden: {words}")

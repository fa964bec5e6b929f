"""The policy of signals: who may send one, in whose name, and what else they may change.

Who sends a signal is a fact, because the API server knows it: `sentBy` has to be the user that it
has authenticated. Only the gateway may vouch for another, whom it has authenticated itself and
whose right it has asked for.

RBAC knows no fields, so sending a signal takes `patch` on jobs, with which everything that can be
changed of a job could be changed. Who may `signal` a job therefore changes nothing else of
it, unless they may `control` it as well. Nobody else's `patch` is narrowed.
"""

from typing import Final

from asyncjob.lifecycle.signals import SIGNAL_NAME_PATTERN
from asyncjob.names import CONTROL_VERB, GROUP, JOBS, SIGNAL_VERB, VERSION
from asyncjob.rules.policy import (
    MAY_OPERATE,
    MAY_VOUCH,
    AdmissionPolicy,
    PolicyTarget,
    may_on,
)
from asyncjob.rules.rule import Rule, cel_string

_MAY_SIGNAL: Final = may_on(cel_string(JOBS), SIGNAL_VERB)
_MAY_CONTROL: Final = may_on(cel_string(JOBS), CONTROL_VERB)

_SAME_SIGNALS: Final = "dyn(spec).?signals == dyn(spec_was).?signals"
_SAME_METADATA: Final = " && ".join(
    f"object.metadata.?{field} == oldObject.metadata.?{field}"
    for field in ("labels", "annotations")
)
# Every field but one, those that are added some day included.
_SAME_REST: Final = (
    "dyn(spec).all(key, key == 'signals' || dyn(spec_was)[?key] == optional.of(dyn(spec)[key]))"
    f" && dyn(spec_was).all(key, key == 'signals' || key in dyn(spec)) && {_SAME_METADATA}"
)
_SENT: Final = "spec.?signals.orValue({})"
_WAS_SENT: Final = "spec_was.?signals.orValue({})"

SIGNAL_NAME: Final = Rule(
    "signal.name",
    "The name of a signal has up to 63 letters, digits, dots, dashes and underscores, and begins "
    "with a letter or digit.",
    f"{_SENT}.all(name, name.matches({cel_string(SIGNAL_NAME_PATTERN)}))",
)
_SIGNAL_RIGHT: Final = Rule(
    "signal.right",
    "Sending a signal requires the permission `signal` on that job; `operate` does not stand in "
    "for it.",
    f"({_SAME_SIGNALS}) || {_MAY_SIGNAL} || {MAY_VOUCH}",
    "request.userInfo.username + ' may not signal job ' + object.metadata.name",
    is_forbidden=True,
)
_SIGNAL_SENDER: Final = Rule(
    "signal.sender",
    "sentBy of a signal is the user who sends it, unless they may `vouch` for others.",
    f"{_SENT}.all(name, name in {_WAS_SENT} || {_SENT}[name].sentBy == request.userInfo.username)"
    f" || {MAY_VOUCH}",
    "'sentBy must be ' + request.userInfo.username",
    is_forbidden=True,
)
_SIGNAL_ALONE: Final = Rule(
    "signal.alone",
    "Who may `signal` a job, and may not `control` it, changes nothing but its signals.",
    f"({_SAME_REST}) || !{_MAY_SIGNAL} || variables.controls || variables.trusted",
    "request.userInfo.username + ' may signal job ' + object.metadata.name"
    " + ', but not control it'",
    is_forbidden=True,
)

SIGNAL_POLICY: Final = AdmissionPolicy(
    name=f"signals.{GROUP}",
    title="Who may send signals to a job, and in whose name.",
    targets=(PolicyTarget(GROUP, VERSION, (JOBS,)),),
    operations=("UPDATE",),
    conditions={"changes": f"!({_SAME_SIGNALS} && {_SAME_REST})"},
    variables={
        # Apart from the rules: asking the authorizer three times exceeds an expression's budget.
        "controls": _MAY_CONTROL,
        "trusted": f"{MAY_OPERATE} || {MAY_VOUCH}",
    },
    rules=(SIGNAL_NAME, _SIGNAL_RIGHT, _SIGNAL_SENDER, _SIGNAL_ALONE),
)

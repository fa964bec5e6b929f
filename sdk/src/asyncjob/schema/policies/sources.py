"""Who may have a worker read a Secret or ConfigMap: who may read it.

The worker that resolves `payloadFrom` reads on behalf of whoever wrote the job, so the API server
asks for their right, for ConfigMaps as for Secrets: a worker may read what the author may not.
Children of a cron job and reruns are created by the operator, after the author of the cron job,
of its trigger or backfill, or of the rerun wish has been asked here. The gateway creates jobs for
its callers: it asks for their right itself, and vouches for it, so that it needs no right to read
Secrets.
"""

from typing import Final

from asyncjob.names import CRON_JOBS, GROUP, JOBS, VERSION
from asyncjob.schema.laws.law import Rule
from asyncjob.schema.policies.identity import MAY_OPERATE, MAY_VOUCH
from asyncjob.schema.policies.policy import AdmissionPolicy, PolicyTarget

_IS_JOB: Final = "object.kind == 'AsyncJob'"


def _may_get_rule(field: str, resource: str) -> Rule:
    return Rule(
        f"source.{resource}",
        f"Who has a job read one of the {resource} may get it, or else operate on, or vouch for, "
        "asyncjobs.",
        f"!variables.asks || !has(variables.source.{field}) || authorizer.group('')"
        f".resource('{resource}').namespace(request.namespace)"
        f".name(variables.source.{field}.name).check('get').allowed()"
        " || variables.trusted",
        f"variables.path + '.{field}: ' + request.userInfo.username + ' may not get {resource} '"
        f" + variables.source.?{field}.?name.orValue('')",
        is_forbidden=True,
    )


_SOURCE_PAYLOAD_ONCE: Final = Rule(
    "source.payload-once",
    "A job has a payload, or takes it from elsewhere, not both.",
    "request.operation != 'CREATE' && variables.is_job"
    " || dyn(variables.template).?payload.orValue(null) == null",
    "variables.path + ': excludes payload'",
)

PAYLOAD_SOURCE_POLICY: Final = AdmissionPolicy(
    name=f"payload-source.{GROUP}",
    title="Where a job may take its payload from, and whose right that is.",
    targets=(PolicyTarget(GROUP, VERSION, (JOBS, CRON_JOBS)),),
    operations=("CREATE", "UPDATE"),
    conditions={
        "has-source": f"({_IS_JOB} ? has(spec.payloadFrom) : "
        "has(spec.jobTemplate.spec.payloadFrom))",
    },
    variables={
        "is_job": _IS_JOB,
        "path": f"({_IS_JOB} ? 'spec' : 'spec.jobTemplate.spec') + '.payloadFrom'",
        "template": f"{_IS_JOB} ? spec : spec.jobTemplate.spec",
        "source": "variables.template.payloadFrom",
        # Apart from the laws: asking the authorizer three times exceeds an expression's budget.
        "trusted": f"{MAY_OPERATE} || {MAY_VOUCH}",
        # Suspending a cron job, or cancelling a job, takes no right to what it reads.
        "asks": "request.operation == 'CREATE' || (variables.is_job"
        " ? spec.?rerun.orValue(0) > spec_was.?rerun.orValue(0)"
        " : spec.jobTemplate != spec_was.jobTemplate"
        " || spec.?trigger.orValue(0) > spec_was.?trigger.orValue(0)"
        " || (has(spec.backfill) && spec.?backfill != spec_was.?backfill))",
    },
    rules=(
        _SOURCE_PAYLOAD_ONCE,
        _may_get_rule("secretKeyRef", "secrets"),
        _may_get_rule("configMapKeyRef", "configmaps"),
    ),
)

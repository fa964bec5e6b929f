{{/* What the schema cannot say: values that do not go together are refused, with the way out. */}}

{{- define "asyncjob.checks" -}}
{{- include "asyncjob.checks.scope" . }}
{{- include "asyncjob.checks.operator" . }}
{{- range $name, $own := .Values.workers }}
{{- $worker := include "asyncjob.worker" (dict "root" $ "own" $own) | fromYaml }}
{{- if $worker.enabled }}
{{- include "asyncjob.checks.worker" (dict "root" $ "name" $name "worker" $worker) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "asyncjob.checks.scope" -}}
{{- if and .Values.scope.clusterWide .Values.scope.namespaces }}
{{- fail "scope.namespaces: leave it empty where scope.clusterWide is true" }}
{{- end }}
{{- if and .Values.tenants (not .Values.userRoles.create) }}
{{- fail "tenants: they are bound to the roles of userRoles.create, which is false" }}
{{- end }}
{{- end }}

{{- define "asyncjob.checks.operator" -}}
{{- if and .Values.operator.enabled (not .Values.operator.options.leaderElect) (gt (int .Values.operator.replicas) 1) }}
{{- fail "operator.options.leaderElect: false is only for operator.replicas: 1, else two operators act at once" }}
{{- end }}
{{- if and .Values.gateway.enabled .Values.gateway.ingress.enabled (not .Values.gateway.ingress.hosts) }}
{{- fail "gateway.ingress.hosts: an Ingress needs at least one" }}
{{- end }}
{{- end }}

{{- define "asyncjob.checks.worker" -}}
{{- $at := printf "workers.%s" .name }}
{{- $namespaces := include "asyncjob.namespaces" .root | fromJsonArray }}
{{- $account := include "asyncjob.worker.account" . }}
{{- if not (regexMatch "^asyncjob-worker(-[a-z0-9.-]*)?$" $account) }}
{{- fail (printf "%s.serviceAccount.name: %s has to be asyncjob-worker or begin with asyncjob-worker-, because the policy worker-lease.asyncjob.dev tells workers by that; under another name they could write any Lease of their namespace" $at $account) }}
{{- end }}
{{- if and .root.Values.operator.enabled $namespaces (not (has .worker.namespace $namespaces)) }}
{{- fail (printf "%s.namespace: %s is not among scope.namespaces, so no operator would see to its jobs" $at .worker.namespace) }}
{{- end }}
{{- $scaling := .worker.autoscaling }}
{{- if and (eq $scaling.engine "keda") (not $scaling.keda.serverAddress) }}
{{- fail (printf "%s.autoscaling.keda.serverAddress: KEDA has to know where Prometheus is" $at) }}
{{- end }}
{{- if and (eq $scaling.engine "hpa") (lt (int $scaling.minReplicas) 1) }}
{{- fail (printf "%s.autoscaling.minReplicas: 0 is only possible with engine: keda" $at) }}
{{- end }}
{{- end }}

{{/* What the schema cannot say: values that do not go together are refused, with the way out. */}}

{{- define "asyncjob.checks" -}}
{{- include "asyncjob.checks.scope" . }}
{{- include "asyncjob.checks.operator" . }}
{{- include "asyncjob.checks.election" . }}
{{- include "asyncjob.checks.names" (dict "field" "workers" "entries" .Values.workers "length" 30) }}
{{- include "asyncjob.checks.names" (dict "field" "queues" "entries" .Values.queues "length" 63) }}
{{- range $name, $own := .Values.workers }}
{{- $worker := include "asyncjob.worker" (dict "root" $ "own" $own) | fromYaml }}
{{- if $worker.enabled }}
{{- include "asyncjob.checks.worker" (dict "root" $ "name" $name "worker" $worker) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "asyncjob.checks.scope" -}}
{{- if and .Values.scope.clusterWide .Values.scope.namespaces }}
{{- fail "scope.namespaces: leave it empty where scope.clusterWide is true (asyncjob explain chart.scope)" }}
{{- end }}
{{- if and .Values.tenants (not .Values.userRoles.create) }}
{{- fail "tenants: they are bound to the roles of userRoles.create, which is false (asyncjob explain chart.tenants)" }}
{{- end }}
{{- end }}

{{- define "asyncjob.checks.operator" -}}
{{- if and .Values.operator.enabled (not .Values.operator.options.leaderElect) (gt (int .Values.operator.replicas) 1) }}
{{- fail "operator.options.leaderElect: false is only for operator.replicas: 1, else two operators act at once (asyncjob explain chart.election)" }}
{{- end }}
{{- /* The policies let pass what workers write, and do not ask whether they may operate on jobs. */}}
{{- $account := include "asyncjob.operator.account" . }}
{{- if and .Values.operator.enabled (regexMatch "^asyncjob-worker(-[a-z0-9.-]*)?$" $account) }}
{{- fail (printf "operator.serviceAccount.name: %s must neither be asyncjob-worker nor begin with asyncjob-worker-, because the policies tell workers by that; its pod could claim jobs in its own name (asyncjob explain chart.operator-account)" $account) }}
{{- end }}
{{- if and .Values.gateway.enabled .Values.gateway.ingress.enabled (not .Values.gateway.ingress.hosts) }}
{{- fail "gateway.ingress.hosts: an Ingress needs at least one (asyncjob explain chart.ingress)" }}
{{- end }}
{{- end }}

{{/* Not left to the schema: Helm would name another field than the one that is wrong. (field, entries, length) */}}
{{- define "asyncjob.checks.names" -}}
{{- $length := .length }}
{{- $field := .field }}
{{- range $name, $_ := .entries }}
{{- if or (gt (len $name) $length) (not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" $name)) }}
{{- fail (printf "%s.%s: a name has at most %d characters, which are a-z, 0-9 and, between them, - (asyncjob explain chart.names)" $field $name $length) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Of two operators with one Lease only one acts; that of a release with other namespaces never would. */}}
{{- define "asyncjob.checks.election" -}}
{{- if and .Values.operator.enabled .Values.operator.options.leaderElect }}
{{- $ours := include "asyncjob.checks.lease" (include "asyncjob.operator.flags" . | fromJsonArray) }}
{{- range (lookup "apps/v1" "Deployment" .Release.Namespace "").items }}
{{- $labels := default dict .metadata.labels }}
{{- $other := get $labels "app.kubernetes.io/instance" }}
{{- if and (eq (default "" (get $labels "app.kubernetes.io/component")) "operator") (ne $other $.Release.Name) }}
{{- range .spec.template.spec.containers }}
{{- if and (eq .name "operator") (eq $ours (include "asyncjob.checks.lease" .args)) }}
{{- fail (printf "operator.options.leaseName: release %s in this namespace elects its leader by the same Lease, %s, so of both only one would act; install into a namespace of its own, or give this one another leaseName (asyncjob explain chart.lease)" $other $.Values.operator.options.leaseName) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* What of an operator's arguments says where it is elected. */}}
{{- define "asyncjob.checks.lease" -}}
{{- $found := list }}
{{- range . }}
{{- if hasPrefix "--lease-name" . }}{{ $found = append $found . }}{{ end }}
{{- end }}
{{- $found | sortAlpha | toJson }}
{{- end }}

{{- define "asyncjob.checks.worker" -}}
{{- $at := printf "workers.%s" .name }}
{{- $namespaces := include "asyncjob.namespaces" .root | fromJsonArray }}
{{- $account := include "asyncjob.worker.account" . }}
{{- if not (regexMatch "^asyncjob-worker(-[a-z0-9.-]*)?$" $account) }}
{{- fail (printf "%s.serviceAccount.name: %s has to be asyncjob-worker or begin with asyncjob-worker-, because the policy worker-lease.asyncjob.dev tells workers by that; under another name they could write any Lease of their namespace (asyncjob explain chart.worker-account)" $at $account) }}
{{- end }}
{{- if and .root.Values.operator.enabled $namespaces (not (has .worker.namespace $namespaces)) }}
{{- fail (printf "%s.namespace: %s is not among scope.namespaces, so no operator would see to its jobs (asyncjob explain chart.worker-namespace)" $at .worker.namespace) }}
{{- end }}
{{- $scaling := .worker.autoscaling }}
{{- if and (eq $scaling.engine "keda") (not $scaling.keda.serverAddress) }}
{{- fail (printf "%s.autoscaling.keda.serverAddress: KEDA has to know where Prometheus is (asyncjob explain chart.keda)" $at) }}
{{- end }}
{{- if and (eq $scaling.engine "hpa") (lt (int $scaling.minReplicas) 1) }}
{{- fail (printf "%s.autoscaling.minReplicas: 0 is only possible with engine: keda (asyncjob explain chart.hpa)" $at) }}
{{- end }}
{{- end }}

{{/* ServiceAccounts: which name each part has. */}}

{{- define "asyncjob.operator.account" -}}
{{ default (printf "%s-operator" (include "asyncjob.fullname" .)) .Values.operator.serviceAccount.name }}
{{- end }}

{{- define "asyncjob.gateway.account" -}}
{{ default (printf "%s-gateway" (include "asyncjob.fullname" .)) .Values.gateway.serviceAccount.name }}
{{- end }}

{{/* Workers are told by `asyncjob-worker`, whatever the release is called. (root, name, worker) */}}
{{- define "asyncjob.worker.account" -}}
{{- $fullname := include "asyncjob.fullname" .root }}
{{- $own := ternary "" (printf "-%s" $fullname) (eq $fullname "asyncjob") }}
{{- default (printf "asyncjob-worker%s-%s" $own .name) .worker.serviceAccount.name }}
{{- end }}

{{/* A ServiceAccount. (root, component, name, account; also namespace) */}}
{{- define "asyncjob.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "asyncjob.metadata" (merge (dict "annotations" .account.annotations) .) | nindent 2 }}
automountServiceAccountToken: false
{{- end }}

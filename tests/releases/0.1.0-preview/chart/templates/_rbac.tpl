{{/*
Roles and bindings. The rules, each with its reason, come from files/rbac.yaml, which is a copy of
dev/manifests/rbac.yaml.
*/}}

{{/* The rules of a role, comments included. (root, role) */}}
{{- define "asyncjob.rules" -}}
{{- $mark := printf "\n  name: %s\n" .role }}
{{- $found := "" }}
{{- range splitList "\n---\n" (.root.Files.Get "files/rbac.yaml") }}
{{- if contains $mark . }}
{{- $found = last (splitList "\nrules:\n" .) }}
{{- end }}
{{- end }}
{{- required (printf "files/rbac.yaml has no role %s" .role) $found | trim }}
{{- end }}

{{/* Namespaces that the operator sees to, as JSON; none: all. */}}
{{- define "asyncjob.namespaces" -}}
{{- if .Values.scope.clusterWide }}[]
{{- else }}{{ default (list .Release.Namespace) .Values.scope.namespaces | toJson }}
{{- end }}
{{- end }}

{{/* Namespaces that the gateway serves, as JSON. It serves no others, whatever the scope. */}}
{{- define "asyncjob.gateway.namespaces" -}}
{{ default (list .Release.Namespace) (default .Values.scope.namespaces .Values.gateway.namespaces) | toJson }}
{{- end }}

{{/* Rules for an account, in all namespaces or in some. (root, component, name, account, rules, namespaces) */}}
{{- define "asyncjob.grant" -}}
{{- $grant := . }}
{{- if not .namespaces }}
{{- include "asyncjob.role" (merge (dict "kind" "ClusterRole" "cluster" true) .) }}
{{- end }}
{{- range .namespaces }}
{{- include "asyncjob.role" (merge (dict "kind" "Role" "namespace" .) $grant) }}
{{- end }}
{{- end }}

{{- define "asyncjob.role" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  {{- include "asyncjob.metadata" . | nindent 2 }}
rules:
{{ .rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  {{- include "asyncjob.metadata" . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ .account }}
  namespace: {{ default .root.Release.Namespace .accountNamespace }}
{{- end }}

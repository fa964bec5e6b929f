{{/* Names and labels of all objects. */}}

{{- define "asyncjob.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "asyncjob.fullname" -}}
{{- $name := include "asyncjob.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* What a part is found by; may never change for a Deployment that is there. (root, component) */}}
{{- define "asyncjob.selector" -}}
app.kubernetes.io/name: {{ include "asyncjob.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of every object. (root, component) */}}
{{- define "asyncjob.labels" -}}
{{ include "asyncjob.selector" . }}
app.kubernetes.io/part-of: asyncjob
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
Metadata of an object.
(root, component, name; also namespace, annotations, labels; `cluster` where it is in no namespace)
*/}}
{{- define "asyncjob.metadata" -}}
{{- $annotations := merge (dict) (default dict .annotations) .root.Values.commonAnnotations -}}
name: {{ .name }}
{{- if not .cluster }}
namespace: {{ default .root.Release.Namespace .namespace }}
{{- end }}
labels:
  {{- include "asyncjob.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The second map over the first, maps within maps too; lists and all else are replaced. */}}
{{- define "asyncjob.merge" -}}
{{- $out := deepCopy (index . 0) }}
{{- range $key, $new := (index . 1) }}
{{- $old := get $out $key }}
{{- if and (kindIs "map" $new) (kindIs "map" $old) }}
{{- $new = include "asyncjob.merge" (list $old $new) | fromYaml }}
{{- end }}
{{- $_ := set $out $key $new }}
{{- end }}
{{- toYaml $out }}
{{- end }}

{{/* Address of an image. (root, image) */}}
{{- define "asyncjob.image" -}}
{{- $registry := default .root.Values.imageRegistry .image.registry }}
{{- $name := ternary (printf "%s/%s" $registry .image.repository) .image.repository (ne $registry "") }}
{{- if .image.digest }}
{{- printf "%s@%s" $name .image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .image.tag) }}
{{- end }}
{{- end }}

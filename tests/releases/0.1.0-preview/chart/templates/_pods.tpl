{{/* What all pods have in common. */}}

{{/* `podDefaults` with a part's own on top. (root, pod) */}}
{{- define "asyncjob.pod" -}}
{{ include "asyncjob.merge" (list .root.Values.podDefaults .pod) }}
{{- end }}

{{/* Labels and annotations of a Deployment or Job. (as metadata; pod: merged) */}}
{{- define "asyncjob.workload" -}}
{{- $annotations := merge (dict) (default dict .annotations) .pod.workloadAnnotations }}
{{- include "asyncjob.metadata" (merge (dict "labels" .pod.workloadLabels "annotations" $annotations) .) }}
{{- end }}

{{/*
A pod template. No version in its labels: an upgrade that changes nothing else restarts no pods.
(root, component, account, pod: merged, container: its own YAML; also labels, env, volumes, mounts: lists, grace: seconds, restartPolicy)
*/}}
{{- define "asyncjob.podTemplate" -}}
{{- $container := fromYaml .container }}
metadata:
  labels:
    {{- include "asyncjob.selector" . | nindent 4 }}
    app.kubernetes.io/part-of: asyncjob
    {{- with .root.Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .pod.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: {{ $container.name }}
    {{- with merge (dict) .pod.annotations .root.Values.commonAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "asyncjob.podSpec" . | nindent 2 }}
{{- end }}

{{- define "asyncjob.podSpec" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- with .restartPolicy }}
restartPolicy: {{ . }}
{{- end }}
{{- with .grace }}
terminationGracePeriodSeconds: {{ . }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- with .pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .pod.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- with .pod.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "asyncjob.spread" . }}
{{- with .pod.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.initContainers }}
initContainers:
{{ toYaml . }}
{{- end }}
containers:
- {{ include "asyncjob.container" . | indent 2 | trim }}
{{- with .pod.extraContainers }}
{{ toYaml . }}
{{- end }}
volumes:
- name: tmp
  emptyDir:
    sizeLimit: {{ .pod.tmpSizeLimit }}
{{- with concat (default list .volumes) .pod.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "asyncjob.container" -}}
{{ .container | trim }}
{{- with concat (default list .env) .pod.env }}
env:
{{ toYaml . }}
{{- end }}
{{- with .pod.envFrom }}
envFrom:
{{ toYaml . }}
{{- end }}
{{- with .pod.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.containerSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
- name: tmp
  mountPath: /tmp
{{- with concat (default list .mounts) .pod.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "asyncjob.spread" -}}
{{- if .pod.topologySpreadConstraints }}
topologySpreadConstraints:
{{ toYaml .pod.topologySpreadConstraints }}
{{- else if and .pod.topologySpread.enabled (not .restartPolicy) }}
topologySpreadConstraints:
{{- $spread := .pod.topologySpread }}
{{- $selector := include "asyncjob.selector" . }}
{{- range $spread.keys }}
- topologyKey: {{ . }}
  maxSkew: {{ $spread.maxSkew }}
  whenUnsatisfiable: {{ $spread.whenUnsatisfiable }}
  labelSelector:
    matchLabels:
      {{- $selector | nindent 6 }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- end }}

{{/* Image, command and arguments. (root, image, command, args) */}}
{{- define "asyncjob.program" -}}
image: {{ include "asyncjob.image" . }}
imagePullPolicy: {{ .image.pullPolicy }}
{{- with .command }}
command:
{{ toYaml . }}
{{- end }}
args:
{{ toYaml .args }}
{{- end }}

{{/* A probe by HTTP with what is to differ from it. (path, port, probe: defaults, own) */}}
{{- define "asyncjob.probe" -}}
{{- $get := dict "path" .path "port" .port }}
{{- with .scheme }}{{ $_ := set $get "scheme" . }}{{ end }}
{{- include "asyncjob.merge" (list (merge (dict "httpGet" $get) .probe) .own) }}
{{- end }}

{{/*
Options as flags, as JSON: numbers and texts `--key=value`, booleans `--key` and `--no-key`, lists
once for each entry, maps as JSON. Null, the empty text and empty lists and maps are left out.
*/}}
{{- define "asyncjob.flags" -}}
{{- $flags := list }}
{{- range $key, $value := .options }}
{{- $flag := kebabcase $key }}
{{- if kindIs "bool" $value }}
{{- $flags = append $flags (ternary (printf "--%s" $flag) (printf "--no-%s" $flag) $value) }}
{{- else if kindIs "slice" $value }}
{{- range $value }}{{ $flags = append $flags (printf "--%s=%v" $flag .) }}{{ end }}
{{- else if kindIs "map" $value }}
{{- if $value }}{{ $flags = append $flags (printf "--%s=%s" $flag (toJson $value)) }}{{ end }}
{{- else if kindIs "string" $value }}
{{- if $value }}{{ $flags = append $flags (printf "--%s=%s" $flag $value) }}{{ end }}
{{- else if not (kindIs "invalid" $value) }}
{{- $flags = append $flags (printf "--%s=%s" $flag (toJson $value)) }}
{{- end }}
{{- end }}
{{- toJson $flags }}
{{- end }}

{{/* A PodDisruptionBudget. (root, component, name, budget; also namespace) */}}
{{- define "asyncjob.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "asyncjob.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .budget.maxUnavailable }}
  # A pod that is not ready anyway may go: it must not keep a node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "asyncjob.selector" . | nindent 6 }}
{{- end }}

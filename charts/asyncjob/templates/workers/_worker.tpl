{{/* One of `workers` with everything it has from `workerDefaults`. */}}

{{/* (root, own) */}}
{{- define "asyncjob.worker" -}}
{{- $worker := include "asyncjob.merge" (list .root.Values.workerDefaults (default dict .own)) | fromYaml }}
{{- $_ := set $worker "namespace" (default .root.Release.Namespace $worker.namespace) }}
{{- toYaml $worker }}
{{- end }}

{{/* (root, name, worker) → what the templates of a worker's objects take */}}
{{- define "asyncjob.worker.component" -}}
worker-{{ .name }}
{{- end }}

{{- define "asyncjob.worker.queue" -}}
{{ default .name .worker.queue }}
{{- end }}

{{/*
Seconds a pod has to end: handlers get `grace`, then `stopWait` to stop, 5 s to be released, 3 s for
the Lease, 2 s for hooks and twice `stopWait` for resources; and 2 s more, since it has to exceed that.
*/}}
{{- define "asyncjob.worker.patience" -}}
{{- $options := .worker.options }}
{{- $needed := addf $options.grace (mulf 3 $options.stopWait) 15 | ceil | int }}
{{- kindIs "invalid" .worker.terminationGracePeriodSeconds | ternary $needed (int .worker.terminationGracePeriodSeconds) }}
{{- end }}

{{- define "asyncjob.worker.container" -}}
{{- $worker := .worker }}
{{- $options := merge (dict "queue" (include "asyncjob.worker.queue" .)) (include "asyncjob.worker.leader" . | fromYaml) $worker.options }}
{{- $flags := include "asyncjob.flags" (dict "options" $options) | fromJsonArray }}
{{- $app := ternary (list) (list $worker.app) (empty $worker.app) }}
name: worker
{{ include "asyncjob.program" (dict "root" .root "image" $worker.image "command" $worker.command "args" (concat (list "run") $app $flags $worker.extraArgs)) }}
ports:
- name: health
  containerPort: {{ $options.healthPort }}
startupProbe:
  {{- include "asyncjob.probe" (dict "path" "/livez" "port" "health" "own" $worker.probes.startup
        "probe" (dict "periodSeconds" 1 "failureThreshold" 60)) | nindent 2 }}
readinessProbe:
  {{- include "asyncjob.probe" (dict "path" "/readyz" "port" "health" "own" $worker.probes.readiness
        "probe" (dict "periodSeconds" 5)) | nindent 2 }}
livenessProbe:
  # A process that does not answer cannot stop in good order either, and its other jobs wait.
  {{- include "asyncjob.probe" (dict "path" "/livez" "port" "health" "own" $worker.probes.liveness
        "probe" (dict "periodSeconds" 20 "timeoutSeconds" 10 "failureThreshold" 3 "terminationGracePeriodSeconds" 10)) | nindent 2 }}
{{- end }}

{{/* Environment, as JSON: who the pod is, and what the built-in handlers may do. */}}
{{- define "asyncjob.worker.env" -}}
{{- $env := list }}
{{- range $name, $path := dict "POD_NAME" "metadata.name" "POD_NAMESPACE" "metadata.namespace" "POD_UID" "metadata.uid" }}
{{- $env = append $env (dict "name" $name "valueFrom" (dict "fieldRef" (dict "fieldPath" $path))) }}
{{- end }}
{{- range $name, $value := dict
      "ASYNCJOB_HTTP_ALLOW" .worker.builtIn.httpAllow
      "ASYNCJOB_EXEC_ALLOW" .worker.builtIn.execAllow
      "ASYNCJOB_EXEC_PASS_ENV" .worker.builtIn.execPassEnv
      "ASYNCJOB_EXEC_JOB_ENV" .worker.builtIn.execJobEnv }}
{{- if $value }}{{ $env = append $env (dict "name" $name "value" (join " " $value)) }}{{ end }}
{{- end }}
{{- toJson $env }}
{{- end }}

{{/* Where the worker finds the operators' Lease, unless it looks there anyway; of (root, worker). */}}
{{- define "asyncjob.worker.leader" -}}
{{- $elected := .root.Values.operator.options }}
{{- $namespace := coalesce .worker.options.operatorNamespace $elected.leaseNamespace .root.Release.Namespace }}
{{- $name := default $elected.leaseName .worker.options.operatorLease }}
operatorNamespace: {{ eq $namespace .worker.namespace | ternary "" $namespace | quote }}
operatorLease: {{ eq $name "asyncjob-operator" | ternary "" $name | quote }}
{{- end }}

{{/* Rules of a worker's role. */}}
{{- define "asyncjob.worker.rules" -}}
{{ include "asyncjob.rules" (dict "root" .root "role" "asyncjob-worker") }}
{{- if .worker.children }}
{{ include "asyncjob.rules" (dict "root" .root "role" "asyncjob-worker-children") }}
{{- end }}
{{- include "asyncjob.worker.source" (dict "resource" "secrets" "names" .worker.payloadSources.secrets "field" "secretKeyRef") }}
{{- include "asyncjob.worker.source" (dict "resource" "configmaps" "names" .worker.payloadSources.configMaps "field" "configMapKeyRef") }}
{{- end }}

{{- define "asyncjob.worker.source" -}}
{{- if .names }}
# Read the payload of a job that has `payloadFrom.{{ .field }}`. The payload-source policy has asked
# whether the job's author may read it, too.
- apiGroups: [""]
  resources: [{{ .resource }}]
  verbs: [get]
  {{- if not (has "*" .names) }}
  resourceNames: {{ toJson .names }}
  {{- end }}
{{- end }}
{{- end }}

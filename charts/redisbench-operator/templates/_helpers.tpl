{{- define "redisbench.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" (.Release.Name | trunc 32 | trimSuffix "-") .Chart.Name -}}
{{- end -}}
{{- end -}}

{{- define "redisbench.selector" -}}
app.kubernetes.io/name: redisbench-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "redisbench.labels" -}}
{{ include "redisbench.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "redisbench.image" -}}
{{- if not .image.repository -}}
{{- fail (printf "%s.image.repository is not set, and there is no public image: build both images with the Dockerfile, push them to a registry that the cluster pulls from, and set operator.image.repository and loadgen.image.repository, such as --set %s.image.repository=registry.example/redisbench/%s" .part .part .part) -}}
{{- end -}}
{{ .image.repository }}:{{ .image.tag | default .version }}
{{- end -}}

{{/* As JSON. Quantities are strings, though YAML reads some as numbers. */}}
{{- define "redisbench.driverResources" -}}
{{- $resources := dict -}}
{{- range $kind, $quantities := .Values.driverResources -}}
{{- $strings := dict -}}
{{- range $name, $quantity := $quantities -}}
{{- $_ := set $strings $name (toString $quantity) -}}
{{- end -}}
{{- $_ := set $resources $kind $strings -}}
{{- end -}}
{{ toJson $resources }}
{{- end -}}

{{- define "redisbench.masterKeySecret" -}}
{{ .Values.masterKey.existingSecret | default (printf "%s-master-key" (include "redisbench.name" .)) }}
{{- end -}}

{{/*
Permissions of the operator in a watched namespace. It uses all of them.
It creates Secrets (the credential of a run) and never reads them.
*/}}
{{- define "redisbench.rules" -}}
- apiGroups: [redisbench.dev]
  resources: [redisbenchmarks]
  verbs: [get, list, watch, delete]
- apiGroups: [redisbench.dev]
  resources: [redisbenchmarks/status]
  verbs: [patch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, delete]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [create, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list, create, patch]
{{- end -}}

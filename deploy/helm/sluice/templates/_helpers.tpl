{{- define "sluice.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* A value as text: numbers are floating-point ones in Helm, and a million would be 1e+06. */}}
{{- define "sluice.text" -}}
{{- if kindIs "string" . -}}{{ . }}{{- else -}}{{ toJson . }}{{- end -}}
{{- end -}}

{{/* A duration such as 5s or 2m, in seconds. */}}
{{- define "sluice.seconds" -}}
{{- if hasSuffix "m" . -}}
{{- mul 60 (trimSuffix "m" . | int) -}}
{{- else -}}
{{- trimSuffix "s" . | int -}}
{{- end -}}
{{- end -}}

{{- define "sluice.tokenSecret" -}}
{{- .Values.adminTokenSecret.name | default (include "sluice.name" .) -}}
{{- end -}}

{{- define "sluice.tokenKey" -}}
{{- if .Values.adminTokenSecret.name -}}{{ .Values.adminTokenSecret.key }}{{- else -}}admin-token{{- end -}}
{{- end -}}

{{/* What Helm cannot know by the types of the values. */}}
{{- define "sluice.check" -}}
{{- $most := ternary .Values.autoscaling.maxReplicas .Values.replicas .Values.autoscaling.enabled | int -}}
{{- if and (gt $most 1) (not (or .Values.redisUrl .Values.redisUrlSecret.name .Values.config.redisUrl)) -}}
{{- fail "more than one replica needs Redis, or each would count by itself: set redisUrl or redisUrlSecret.name" -}}
{{- end -}}
{{- if not (or .Values.config.upstream .Values.config.upstreamUrl .Values.config.routes .Values.env.UPSTREAM_URL) -}}
{{- fail "no backend: set config.upstream, such as http://app:3000" -}}
{{- end -}}
{{- if not (or .Values.adminToken .Values.adminTokenSecret.name) -}}
{{- fail "no token for the admin port: set adminToken or adminTokenSecret.name" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.adminFrom) -}}
{{- fail "Prometheus could not reach the admin port: name it in networkPolicy.adminFrom" -}}
{{- end -}}
{{- end -}}

{{/* A change of these needs new pods: settings that are read at the start only, and the token. */}}
{{- define "sluice.restart" -}}
{{- $reloaded := list "limits" "preset" "timezone" "routes" "allowList" "denyList" "refusal" "cors" "jwt" "geoip" "rateLimitHeaders" "requestHeaders" -}}
{{- $settings := .Values.config -}}
{{- range $reloaded -}}{{- $settings = omit $settings . -}}{{- end -}}
{{- list $settings .Values.adminToken .Values.redisUrl | toJson | sha256sum -}}
{{- end -}}

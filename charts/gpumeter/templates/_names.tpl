{{- define "gpumeter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end }}

{{- define "gpumeter.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "gpumeter.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "gpumeter.selector" -}}
app.kubernetes.io/name: {{ include "gpumeter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: exporter
{{- end }}

{{/* Labels of an object. Arguments: the root, the component. */}}
{{- define "gpumeter.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ include "gpumeter.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "gpumeter.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "gpumeter.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{/* Who is asked what pods are: nobody, where nobody asks whose pods they are. */}}
{{- define "gpumeter.source" -}}
{{- ternary "none" .Values.metadata.source (eq .Values.attribution "none") -}}
{{- end }}

{{/* Whether a token is needed; empty: not. */}}
{{- define "gpumeter.token" -}}
{{- if has (include "gpumeter.source" .) (list "api" "kubelet") }}true{{ end -}}
{{- end }}

{{/* What of the nodes' sort follows from the preset, as YAML. */}}
{{- define "gpumeter.preset" -}}
{{- $nvidia := list "nvidia.com/gpu.present=true" "feature.node.kubernetes.io/pci-10de.present=true" -}}
{{- $all := dict
  "bare" dict
  "gpuOperator" (dict "runtimeClassName" "nvidia" "nvidia" $nvidia)
  "gke" (dict "driver" "/home/kubernetes/bin/nvidia" "privileged" true "nvidia" (list "cloud.google.com/gke-accelerator"))
  "eks" (dict "nvidia" (concat $nvidia (list "k8s.amazonaws.com/accelerator" "karpenter.k8s.aws/instance-gpu-manufacturer=nvidia" "eks.amazonaws.com/instance-gpu-manufacturer=nvidia")))
  "aks" (dict "nvidia" (concat $nvidia (list "kubernetes.azure.com/accelerator=nvidia")) "taint" "sku")
  "openshift" (dict "runtimeClassName" "nvidia" "nvidia" $nvidia "selinux" "spc_t") -}}
{{- index $all .Values.preset | toYaml -}}
{{- end }}

{{/* Whether the container is privileged; empty: not. */}}
{{- define "gpumeter.privileged" -}}
{{- if or .Values.kernelLog (include "gpumeter.preset" . | fromYaml).privileged }}true{{ end -}}
{{- end }}

{{/* Whether an object of Prometheus' operator can be made. Arguments: the root, its kind; empty: not. */}}
{{- define "gpumeter.operator" -}}
{{- $root := index . 0 -}}
{{- $when := toString $root.Values.prometheusOperator -}}
{{- if or (eq $when "true") (and (eq $when "auto") ($root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" (index . 1)))) }}true{{ end -}}
{{- end }}

{{/* Whether the web server is anything but plain HTTP open to all; empty: not. */}}
{{- define "gpumeter.web" -}}
{{- if or .Values.web.tls.enabled .Values.web.configSecret }}true{{ end -}}
{{- end }}

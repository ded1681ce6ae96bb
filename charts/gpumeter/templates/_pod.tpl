{{/* The flags, one a line. */}}
{{- define "gpumeter.args" -}}
{{- $v := .Values -}}
- serve
- --web.listen-address=:{{ $v.web.port }}
{{- if include "gpumeter.web" . }}
- --web.config.file=/etc/gpumeter/web/web.yaml
{{- end }}
{{- if $v.web.debug }}
- --web.enable-debug
{{- end }}
- --log.level={{ $v.log.level }}
- --log.format={{ $v.log.format }}
- --state.directory=/var/lib/gpumeter
- --kernel-log={{ ternary "/dev/kmsg" "none" $v.kernelLog }}
- --attribution={{ $v.attribution }}
- --labels={{ $v.labels }}
{{- if eq $v.attribution "auto" }}
- --host.proc=/host/proc
- --kubernetes.kubelet-dir={{ $v.kubelet.directory }}
- --kubernetes.poll={{ $v.kubelet.poll }}
- --kubernetes.node=$(NODE_NAME)
- --kubernetes.pod-metadata={{ ternary "kubelet" $v.metadata.source (eq $v.metadata.source "podsAPI") }}
{{- if eq $v.metadata.source "kubelet" }}
- --kubernetes.kubelet-url=https://$(HOST_IP):10250
{{- end }}
{{- if $v.metadata.kubeletInsecure }}
- --kubernetes.kubelet-insecure
{{- end }}
{{- range $v.metadata.podLabels }}
- {{ printf "--kubernetes.pod-labels=%s" . | quote }}
{{- end }}
{{- range $v.metadata.podAnnotations }}
- {{ printf "--kubernetes.pod-annotations=%s" . | quote }}
{{- end }}
{{- end }}
{{- range $v.metrics.include }}
- {{ printf "--metrics.include=%s" . | quote }}
{{- end }}
{{- range $v.metrics.exclude }}
- {{ printf "--metrics.exclude=%s" . | quote }}
{{- end }}
{{- range $v.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* The variables: those of the chart, but for what extraEnv has too, and its. */}}
{{- define "gpumeter.env" -}}
{{- $given := list -}}
{{- range .Values.extraEnv }}{{ $given = append $given .name }}{{ end -}}
{{- $all := list -}}
{{- range include "gpumeter.variables" . | fromYamlArray -}}
{{- if not (has .name $given) }}{{ $all = append $all . }}{{ end -}}
{{- end -}}
{{- concat $all .Values.extraEnv | toYaml -}}
{{- end }}

{{- define "gpumeter.variables" -}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
{{- if eq (include "gpumeter.source" .) "kubelet" }}
- name: HOST_IP
  valueFrom: {fieldRef: {fieldPath: status.hostIP}}
{{- end }}
{{- if has "nvidia" .Values.vendors }}
# The NVIDIA runtime gives the container the driver's library and all devices, to look at.
- {name: NVIDIA_VISIBLE_DEVICES, value: all}
- {name: NVIDIA_DRIVER_CAPABILITIES, value: utility}
{{- if .Values.migProcesses }}
- {name: NVIDIA_MIG_MONITOR_DEVICES, value: all}
{{- end }}
{{- end }}
{{- if (include "gpumeter.preset" . | fromYaml).driver }}
- {name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}
{{- end }}
{{- end }}

{{/* One probe of /healthz or /readyz: a connection alone, where the kubelet has no certificate or password. */}}
{{- define "gpumeter.probe" -}}
{{- $v := (index . 0).Values -}}
{{- if or $v.web.configSecret $v.web.tls.clientAuth -}}
tcpSocket: {port: metrics}
{{- else -}}
httpGet: {path: {{ index . 1 }}, port: metrics{{ if $v.web.tls.enabled }}, scheme: HTTPS{{ end }}}
{{- end }}
{{- end }}

{{- define "gpumeter.security" -}}
readOnlyRootFilesystem: true
{{- if include "gpumeter.privileged" . }}
privileged: true
{{- else if .Values.migProcesses }}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL], add: [SYS_ADMIN]}
{{- else }}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end }}
{{- end }}

{{/* The mounts and their volumes, as two lists of YAML. */}}
{{- define "gpumeter.mounts" -}}
{{- $v := .Values -}}
{{- $preset := include "gpumeter.preset" . | fromYaml -}}
mounts:
  - {name: state, mountPath: /var/lib/gpumeter}
  {{- if eq $v.attribution "auto" }}
  - {name: pod-resources, mountPath: {{ printf "%s/pod-resources" $v.kubelet.directory | quote }}, readOnly: true}
  - {name: proc, mountPath: /host/proc, readOnly: true}
  {{- if eq $v.metadata.source "podsAPI" }}
  - {name: pods-api, mountPath: {{ printf "%s/pods-api" $v.kubelet.directory | quote }}, readOnly: true}
  {{- end }}
  {{- end }}
  {{- if $preset.driver }}
  - {name: driver, mountPath: /usr/local/nvidia, readOnly: true}
  {{- end }}
  {{- if include "gpumeter.web" . }}
  - {name: web, mountPath: /etc/gpumeter/web, readOnly: true}
  {{- end }}
volumes:
  {{- if $v.state.hostPath }}
  - {name: state, hostPath: {path: {{ $v.state.hostPath | quote }}, type: DirectoryOrCreate}}
  {{- else }}
  - {name: state, emptyDir: {sizeLimit: 16Mi}}
  {{- end }}
  {{- if eq $v.attribution "auto" }}
  - {name: pod-resources, hostPath: {path: {{ printf "%s/pod-resources" $v.kubelet.directory | quote }}, type: Directory}}
  - {name: proc, hostPath: {path: /proc, type: Directory}}
  {{- if eq $v.metadata.source "podsAPI" }}
  - {name: pods-api, hostPath: {path: {{ printf "%s/pods-api" $v.kubelet.directory | quote }}, type: Directory}}
  {{- end }}
  {{- end }}
  {{- if $preset.driver }}
  - {name: driver, hostPath: {path: {{ $preset.driver }}, type: Directory}}
  {{- end }}
  {{- if $v.web.configSecret }}
  - {name: web, secret: {secretName: {{ $v.web.configSecret | quote }}}}
  {{- else if $v.web.tls.enabled }}
  - name: web
    projected:
      sources:
        - secret: {name: {{ $v.web.tls.secretName | quote }}}
        - configMap: {name: {{ include "gpumeter.fullname" . }}-web}
  {{- end }}
{{- end }}

{{/* Which nodes: each term is enough. */}}
{{- define "gpumeter.affinity" -}}
{{- $preset := include "gpumeter.preset" . | fromYaml -}}
{{- if .Values.affinity -}}
{{- toYaml .Values.affinity -}}
{{- else if $preset.nvidia -}}
{{- $labels := dict "nvidia" $preset.nvidia
  "amd" (list "feature.node.kubernetes.io/amd-gpu=true" "feature.node.kubernetes.io/pci-1002.present=true")
  "gaudi" (list "feature.node.kubernetes.io/pci-1da3.present=true") -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      {{- range .Values.vendors }}
      {{- range index $labels . }}
      {{- $part := splitList "=" . }}
      - matchExpressions:
          {{- if eq (len $part) 2 }}
          - {key: {{ first $part }}, operator: In, values: [{{ last $part | quote }}]}
          {{- else }}
          - {key: {{ first $part }}, operator: Exists}
          {{- end }}
      {{- end }}
      {{- end }}
{{- end -}}
{{- end }}

{{- define "gpumeter.tolerations" -}}
{{- $taint := dict "nvidia" "nvidia.com/gpu" "amd" "amd.com/gpu" "gaudi" "habana.ai/gaudi" -}}
{{- range .Values.vendors }}
- {key: {{ index $taint . }}, operator: Exists}
{{- end }}
{{- with (include "gpumeter.preset" . | fromYaml).taint }}
- {key: {{ . }}, operator: Equal, value: gpu, effect: NoSchedule}
{{- end }}
{{- with .Values.tolerations }}
{{ toYaml . }}
{{- end }}
{{- end }}

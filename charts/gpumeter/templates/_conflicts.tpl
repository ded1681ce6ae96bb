{{/* Values that can not hold together, all of them said at once. */}}
{{- define "gpumeter.conflicts" -}}
{{- $v := .Values -}}
{{- $bad := list -}}
{{- if and $v.web.tls.enabled (not $v.web.tls.secretName) (not $v.web.configSecret) -}}
{{- $bad = append $bad "web.tls.enabled wants web.tls.secretName, a Secret with tls.crt and tls.key, or web.configSecret" -}}
{{- end -}}
{{- if and $v.web.tls.secretName $v.web.configSecret -}}
{{- $bad = append $bad "web.tls.secretName and web.configSecret: give one; the second is the whole configuration" -}}
{{- end -}}
{{- if and (or $v.web.tls.secretName $v.web.tls.clientAuth) (not $v.web.tls.enabled) -}}
{{- $bad = append $bad "web.tls.secretName and web.tls.clientAuth want web.tls.enabled" -}}
{{- end -}}
{{- if and (include "gpumeter.token" .) (not $v.rbac.create) (not $v.serviceAccount.name) -}}
{{- $bad = append $bad (printf "metadata.source %s wants rights: rbac.create, or serviceAccount.name with an account that has them; or metadata.source none" $v.metadata.source) -}}
{{- end -}}
{{- if and (include "gpumeter.token" .) $v.rbac.create (not $v.serviceAccount.create) (not $v.serviceAccount.name) -}}
{{- $bad = append $bad "rbac.create without serviceAccount.create wants serviceAccount.name: every pod of the namespace has the account default" -}}
{{- end -}}
{{- if and (or $v.metadata.podLabels $v.metadata.podAnnotations) (eq (include "gpumeter.source" .) "none") -}}
{{- $bad = append $bad "metadata.podLabels and metadata.podAnnotations want attribution, and a metadata.source other than none" -}}
{{- end -}}
{{- if and $v.metadata.kubeletInsecure (ne $v.metadata.source "kubelet") -}}
{{- $bad = append $bad "metadata.kubeletInsecure belongs to metadata.source kubelet" -}}
{{- end -}}
{{- if and $v.migProcesses (eq $v.attribution "none") -}}
{{- $bad = append $bad "migProcesses wants attribution: it tells whose the processes are" -}}
{{- end -}}
{{- if and $v.state.hostPath (eq $v.attribution "none") -}}
{{- $bad = append $bad "state.hostPath wants attribution: the directory is root's, and without attribution the pod is not" -}}
{{- end -}}
{{- if and $v.serviceMonitor.enabled $v.podMonitor.enabled -}}
{{- $bad = append $bad "serviceMonitor.enabled and podMonitor.enabled: give one, or every series is there twice" -}}
{{- end -}}
{{- if and $v.monitor.basicAuth $v.monitor.authorization -}}
{{- $bad = append $bad "monitor.basicAuth and monitor.authorization: give one" -}}
{{- end -}}
{{- if and $v.podMonitoring.enabled (or $v.monitor.tlsConfig $v.monitor.basicAuth $v.monitor.authorization $v.monitor.relabelings $v.monitor.metricRelabelings) -}}
{{- $bad = append $bad "podMonitoring.enabled: Google's API has other words than monitor.tlsConfig, basicAuth, authorization, relabelings and metricRelabelings: give podMonitoring.endpoint" -}}
{{- end -}}
{{- $ours := list "attribution" "labels" "kubernetes.kubelet-dir" "kubernetes.poll" "kubernetes.pod-metadata" "kubernetes.node" "kubernetes.pod-labels" "kubernetes.pod-annotations" "kubernetes.kubelet-url" "kubernetes.kubelet-insecure" "metrics.include" "metrics.exclude" "log.level" "log.format" "kernel-log" "host.proc" "state.directory" "web.listen-address" "web.config.file" "web.enable-debug" -}}
{{- range $v.extraArgs -}}
{{- $flag := . | trimPrefix "--" | splitList "=" | first -}}
{{- if has $flag $ours -}}
{{- $bad = append $bad (printf "extraArgs: --%s is set by a value of the chart" $flag) -}}
{{- end -}}
{{- end -}}
{{- if $bad -}}
{{- fail (printf "\n\ngpumeter: values that conflict:\n  %s\n" (join "\n  " $bad)) -}}
{{- end -}}
{{- end }}

{{- /* Labels of every object. */ -}}
{{- define "everynode.labels" -}}
{{ include "everynode.chartLabels" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Those of the chart, without the user's. */ -}}
{{- define "everynode.chartLabels" -}}
{{ include "everynode.podLabels" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Labels of the controller's pods: none that would restart them without need. */ -}}
{{- define "everynode.podLabels" -}}
{{ include "everynode.selector" . }}
app.kubernetes.io/part-of: everynode
app.kubernetes.io/version: {{ .Chart.AppVersion }}
{{- end }}

{{- /* The selector of the Deployment never changes: it is immutable. */ -}}
{{- define "everynode.selector" -}}
app.kubernetes.io/name: everynode
{{- end }}

{{- define "everynode.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- /* What a monitor scrapes. The labels namespace and daemonset are those of the DaemonSet. */ -}}
{{- define "everynode.endpoint" -}}
- port: metrics
  path: /metrics
  honorLabels: true
  {{- with .interval }}
  interval: {{ . }}
  {{- end }}
  {{- with .endpoint }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* Fail where the controller would end at once. */ -}}
{{- define "everynode.checkArguments" -}}
{{- if and (has "--no-advanced" .Values.extraArgs) (not .Values.native) -}}
{{- fail "\n\nextraArgs has --no-advanced and native is false, which leaves nothing to do: set native: true. Nothing was changed.\n" -}}
{{- end -}}
{{- end }}

{{- /* Fail where the definition of the Advanced DaemonSet is missing or is OpenKruise's. Without a server nothing is looked up. */ -}}
{{- define "everynode.checkDefinition" -}}
{{- $name := "daemonsets.apps.kruise.io" -}}
{{- if or .Values.crds.enabled (not (has "--no-advanced" .Values.extraArgs)) -}}
{{- $live := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name -}}
{{- if $live -}}
{{- $annotations := $live.metadata.annotations | default dict -}}
{{- $ours := eq "everynode" (get ($live.metadata.labels | default dict) "app.kubernetes.io/part-of") -}}
{{- $generated := hasKey $annotations "controller-gen.kubebuilder.io/version" -}}
{{- $webhook := eq "Webhook" (dig "spec" "conversion" "strategy" "None" $live) -}}
{{- if or $webhook (and $generated (not $ours)) -}}
{{- $by := "" -}}
{{- with get $annotations "meta.helm.sh/release-name" }}{{ $by = printf " (Helm release %s)" . }}{{ end -}}
{{- fail (printf "\n\nThe CRD %s belongs to OpenKruise%s: stop Kruise's DaemonSet controller, replace the CRD with `everynode install --namespace %s --adopt-crd` (the DaemonSets stay), then run this again with --take-ownership. Nothing was changed.\n" $name $by .Release.Namespace) -}}
{{- end -}}
{{- else if and (not .Values.crds.enabled) (lookup "v1" "Namespace" "" "kube-system") -}}
{{- fail (printf "\n\nThe cluster has no CRD %s, and crds.enabled is false: set crds.enabled, or install the CRD first. Nothing was changed.\n" $name) -}}
{{- end -}}
{{- end -}}
{{- end }}

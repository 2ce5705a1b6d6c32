{{/* Who calls whom, as in services/create.ts; the gateway calls all services. */}}
{{- define "petstore.calls" -}}
gateway: [pet, category, order, inventory]
pet: [category, inventory]
category: [pet]
order: [inventory]
inventory: [pet, order]
{{- end }}

{{/* The pods, of which `range` gives the name and whom each calls: five kinds, or the one that is all of them. */}}
{{- define "petstore.kinds" -}}
{{- if .Values.singleProcess }}single: []{{ else }}{{ include "petstore.calls" . }}{{ end }}
{{- end }}

{{/* Of what belongs to `name`: (dict "root" $ "name" $name) */}}
{{- define "petstore.labels" -}}
{ app.kubernetes.io/name: petstore, app.kubernetes.io/instance: {{ .root.Release.Name }}, app.kubernetes.io/component: {{ .name }} }
{{- end }}

{{- define "petstore.metadata" -}}
name: {{ .root.Release.Name }}-{{ .name }}
namespace: {{ .root.Release.Namespace }}
labels: {{ include "petstore.labels" . }}
{{- end }}

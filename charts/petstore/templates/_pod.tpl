{{/* The pod of one process, whom it calls included: (dict "root" $ "name" $name "calls" $calls) */}}
{{- define "petstore.pod" -}}
{{- $values := .root.Values }}
{{- $secrets := include "petstore.secrets" . | fromYaml -}}
metadata:
  labels: {{ include "petstore.labels" . }}
spec:
  # Nothing in it asks Kubernetes, and variables about other Services would only be noise.
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $values.imagePullSecrets }}
  imagePullSecrets: {{ toJson . }}
  {{- end }}
  securityContext:
    # The image's user; the group lets it read secrets and write the volume.
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  # More than LAME_DUCK and the 9 s in which a process ends.
  terminationGracePeriodSeconds: 30
  {{- if not $values.singleProcess }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{ include "petstore.labels" $ }}
      # Without the pods that an upgrade replaces: else both new ones could be on one node. Kubernetes 1.25 and 1.26 ignore it.
      matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
  containers:
    - name: {{ .name }}
      image: {{ $values.image.repository }}:{{ $values.image.tag | default .root.Chart.AppVersion }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      {{- if $values.singleProcess }}
      args: [launcher/main.ts, --single-process]
      {{- else if eq .name "gateway" }}
      args: [gateway/main.ts]
      {{- else }}
      args: [services/main.ts, {{ .name }}]
      {{- end }}
      env:
        {{- include "petstore.env" . | nindent 8 }}
      ports:
        - { name: http, containerPort: 8080 }
        - { name: admin, containerPort: 8180 }
      # A start waits for MongoDB, which a restart would not bring back sooner.
      startupProbe:
        httpGet: { path: /startupz, port: admin }
        periodSeconds: 1
        failureThreshold: 600
        timeoutSeconds: 3
      livenessProbe:
        httpGet: { path: /livez, port: admin }
        periodSeconds: 5
        timeoutSeconds: 5
      readinessProbe:
        httpGet: { path: /readyz, port: admin }
        periodSeconds: 2
        timeoutSeconds: 3
      resources: {{ toJson $values.resources }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      volumeMounts:
        - { name: tmp, mountPath: /tmp }
        {{- if $values.singleProcess }}
        - { name: data, mountPath: /data }
        {{- end }}
        {{- range $name := keys $secrets | sortAlpha }}
        - { name: {{ $name }}, mountPath: /secrets/{{ $name }}, readOnly: true }
        {{- end }}
  volumes:
    - { name: tmp, emptyDir: { sizeLimit: 64Mi } }
    {{- range $name := keys $secrets | sortAlpha }}
    {{- $secret := get $secrets $name }}
    - name: {{ $name }}
      secret:
        secretName: {{ $secret.from }}
        defaultMode: 0440
        {{- with $secret.items }}
        items: {{ toJson . }}
        {{- end }}
    {{- end }}
{{- end }}

{{/* What a process reads from files: the volume, the Secret that it is of, and which of its keys, if not all. */}}
{{- define "petstore.secrets" -}}
{{- $values := .root.Values }}
{{- with $values.apiKeysSecret }}
keys: { from: {{ . }} }
{{- end }}
{{- with $values.tls.secret }}
tls: { from: {{ . }} }
{{- end }}
{{- if not $values.singleProcess }}
{{- with $values.internalSecret }}
internal: { from: {{ . }} }
{{- end }}
{{- if ne .name "gateway" }}
mongodb: { from: {{ $values.mongodb.uriSecret }}, items: [{ key: {{ .name }}, path: uri }] }
{{- end }}
{{- end }}
{{- end }}

{{/* The environment of a process. */}}
{{- define "petstore.env" -}}
{{- $values := .root.Values }}
{{- $release := .root.Release }}
{{- $isGateway := has .name (list "gateway" "single") -}}
# Pods are other machines to each other. The NetworkPolicies say who can come.
- { name: HOST, value: 0.0.0.0 }
- { name: ADMIN_HOST, value: 0.0.0.0 }
{{- if eq $values.auth "none" }}
- { name: ALLOW_UNAUTHENTICATED, value: beyond-loopback }
{{- else }}
- { name: AUTH_MODE, value: {{ quote $values.auth }} }
{{- end }}
{{- if contains "keys" $values.auth }}
- { name: API_KEYS_FILE, value: /secrets/keys/keys.json }
{{- end }}
{{- if $values.tls.secret }}
- { name: TLS_CERT, value: /secrets/tls/tls.crt }
- { name: TLS_KEY, value: /secrets/tls/tls.key }
{{- end }}
{{- if $isGateway }}
{{- $service := printf "%s-gateway" $release.Name }}
{{- $inNamespace := printf "%s.%s" $service $release.Namespace }}
{{- $names := list $service $inNamespace (printf "%s.svc" $inNamespace) (printf "%s.svc.cluster.local" $inNamespace) }}
- { name: ALLOWED_HOSTS, value: {{ concat $names $values.allowedHosts | join "," | quote }} }
{{- end }}
{{- if not $values.singleProcess }}
{{- if $values.tls.secret }}
- { name: INTERNAL_TLS_CA, value: /secrets/tls/ca.crt }
{{- end }}
{{- if $values.internalSecret }}
- { name: INTERNAL_SECRET_FILE, value: /secrets/internal/secret }
{{- end }}
{{- if eq .name "gateway" }}
# By then nobody sends it new connections: its pod is out of all lists.
- { name: LAME_DUCK, value: 15s }
{{- else }}
- { name: MONGODB_URI_FILE, value: /secrets/mongodb/uri }
{{- end }}
{{- range .calls }}
- { name: {{ upper . }}_URL, value: "{{ ternary "https" "http" (hasKey $values.tls "secret") }}://{{ $release.Name }}-{{ . }}:8080" }
{{- end }}
{{- end }}
{{- range $name, $value := $values.settings }}
- { name: {{ $name }}, value: {{ quote $value }} }
{{- end }}
{{- end }}

{{/* The labels by which a component is selected. Never change: selectors are immutable. */}}
{{- define "kausality.selector" -}}
app.kubernetes.io/name: kausality
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The labels of an object. Call with a dict of root and, where it belongs to one, component. */}}
{{- define "kausality.labels" -}}
app.kubernetes.io/name: kausality
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "kausality.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* How a Pod of ours is confined: Pod Security Standard "restricted". */}}
{{- define "kausality.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "kausality.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* A Deployment. Call with a dict of root, component, values and args; and of annotations, volumes and mounts, if there are any. */}}
{{- define "kausality.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: kausality-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "kausality.labels" . | nindent 4 }}
spec:
  replicas: {{ .values.replicas }}
  revisionHistoryLimit: 3
  strategy:
    type: RollingUpdate
    # A replica goes when another is there.
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  selector:
    matchLabels:
      {{- include "kausality.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "kausality.labels" . | nindent 8 }}
        {{- with .values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with merge (dict) (.annotations | default dict) .values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: kausality-{{ .component }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      {{- with .root.Values.priorityClass.name }}
      priorityClassName: {{ . | quote }}
      {{- end }}
      terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
      securityContext:
        {{- include "kausality.podSecurity" . | nindent 8 }}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      affinity:
        {{- if .values.affinity }}
        {{- toYaml .values.affinity | nindent 8 }}
        {{- else }}
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  {{- include "kausality.selector" . | nindent 18 }}
        {{- end }}
      topologySpreadConstraints:
        {{- if .values.topologySpreadConstraints }}
        {{- toYaml .values.topologySpreadConstraints | nindent 8 }}
        {{- else }}
        {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
        - maxSkew: 1
          topologyKey: {{ . }}
          whenUnsatisfiable: ScheduleAnyway
          # Of one version only: in a roll-out, the old ones are about to go.
          matchLabelKeys: [pod-template-hash]
          labelSelector:
            matchLabels:
              {{- include "kausality.selector" $ | nindent 14 }}
        {{- end }}
        {{- end }}
      containers:
      - name: {{ .component }}
        image: {{ include "kausality.image" .root | quote }}
        imagePullPolicy: {{ .root.Values.image.pullPolicy }}
        args:
          {{- toYaml .args | nindent 10 }}
          {{- with .values.extraArgs }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
        env:
        # Kubernetes puts it into the arguments.
        - name: POD_NAMESPACE
          valueFrom:
            fieldRef:
              fieldPath: metadata.namespace
        - name: RUST_LOG
          value: {{ .root.Values.logLevel | quote }}
        {{- with .values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        ports:
        {{- if eq .component "webhook" }}
        - name: https
          containerPort: 9443
          protocol: TCP
        {{- end }}
        - name: metrics
          containerPort: 8080
          protocol: TCP
        livenessProbe:
          httpGet:
            path: /healthz
            port: metrics
          periodSeconds: 10
          timeoutSeconds: 5
        readinessProbe:
          httpGet:
            path: /readyz
            port: metrics
          periodSeconds: 2
          timeoutSeconds: 2
          failureThreshold: 2
        {{- with .values.resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        securityContext:
          {{- include "kausality.containerSecurity" . | nindent 10 }}
        {{- with .mounts }}
        volumeMounts:
          {{- toYaml . | nindent 10 }}
        {{- end }}
      {{- with .volumes }}
      volumes:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}

{{/* Where a Pod of ours may connect to: names, and the API server, and nothing else. */}}
{{- define "kausality.egress" -}}
- ports:
  - port: 53
    protocol: UDP
  - port: 53
    protocol: TCP
- ports:
  {{- range .Values.networkPolicy.apiServer.ports }}
  - port: {{ . }}
    protocol: TCP
  {{- end }}
  {{- with .Values.networkPolicy.apiServer.cidrs }}
  to:
  {{- range . }}
  - ipBlock:
      cidr: {{ . | quote }}
  {{- end }}
  {{- end }}
{{- end }}

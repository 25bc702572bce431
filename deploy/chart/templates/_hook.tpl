{{/* A Job that Helm runs before it does something, and all that the Job needs for it.
     Takes root, component, hook (when), args and rules (what it may do in the cluster). */}}
{{- define "kausality.hook.job" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: kausality-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "kausality.labels" (dict "root" .root "component" .component) | nindent 4 }}
  annotations:
    {{- include "kausality.hook" . | nindent 4 }}
    helm.sh/hook-weight: "-2"
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: kausality-{{ .component }}
  labels:
    {{- include "kausality.labels" (dict "root" .root "component" .component) | nindent 4 }}
  annotations:
    {{- include "kausality.hook" . | nindent 4 }}
    helm.sh/hook-weight: "-2"
rules:
{{ .rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: kausality-{{ .component }}
  labels:
    {{- include "kausality.labels" (dict "root" .root "component" .component) | nindent 4 }}
  annotations:
    {{- include "kausality.hook" . | nindent 4 }}
    helm.sh/hook-weight: "-1"
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: kausality-{{ .component }}
subjects:
- kind: ServiceAccount
  name: kausality-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
{{- if .root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: kausality-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "kausality.labels" (dict "root" .root "component" .component) | nindent 4 }}
  annotations:
    {{- include "kausality.hook" . | nindent 4 }}
    helm.sh/hook-weight: "-2"
spec:
  podSelector:
    matchLabels:
      {{- include "kausality.selector" (dict "component" .component) | nindent 6 }}
  policyTypes: [Ingress, Egress]
  egress:
  {{- include "kausality.egress" .root | nindent 2 }}
{{- end }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: kausality-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "kausality.labels" (dict "root" .root "component" .component) | nindent 4 }}
  annotations:
    helm.sh/hook: {{ .hook }}
    # One that has failed stays until the next run, for its log. What it was allowed to do goes.
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
    helm.sh/hook-weight: "0"
spec:
  backoffLimit: 3
  activeDeadlineSeconds: 240
  template:
    metadata:
      labels:
        {{- include "kausality.labels" (dict "root" .root "component" .component) | nindent 8 }}
    spec:
      serviceAccountName: kausality-{{ .component }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      restartPolicy: Never
      securityContext:
        {{- include "kausality.podSecurity" .root | nindent 8 }}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.controller.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.controller.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
      - name: {{ .component }}
        image: {{ include "kausality.image" .root | quote }}
        imagePullPolicy: {{ .root.Values.image.pullPolicy }}
        args: {{ .args }}
        resources:
          requests: {cpu: 20m, memory: 32Mi}
          limits: {memory: 128Mi}
        securityContext:
          {{- include "kausality.containerSecurity" .root | nindent 10 }}
{{- end }}

{{/* What makes an object exist while the hook runs: Helm deletes it before the next run, and when all is done. */}}
{{- define "kausality.hook" -}}
helm.sh/hook: {{ .hook }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end }}

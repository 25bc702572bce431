{{/* Where the webhook finds by what it knows API servers. */}}
{{- define "kausality.clients.folder" -}}
/etc/kausality/clients
{{- end }}

{{/* The flags for it. */}}
{{- define "kausality.clients.flags" -}}
{{- $folder := include "kausality.clients.folder" . }}
{{- with .Values.webhook.clientAuthentication }}
{{- if or .caSecret .caConfigMap }}
- --client-ca={{ $folder }}/ca.crt
{{- with .names }}
- --client-names={{ join "," . }}
{{- end }}
{{- end }}
{{- if .tokenSecret }}
- --client-token-file={{ $folder }}/token
{{- end }}
{{- end }}
{{- end }}

{{/* All of it as one volume. A Secret that changes changes in it: nothing is mounted by subPath. */}}
{{- define "kausality.clients.sources" -}}
{{- with .Values.webhook.clientAuthentication }}
{{- if and .caSecret .caConfigMap }}
{{- fail "webhook.clientAuthentication: give caSecret or caConfigMap, not both" }}
{{- end }}
{{- if and .names (not (or .caSecret .caConfigMap)) }}
{{- fail "webhook.clientAuthentication.names are those of certificates: give caSecret or caConfigMap, too" }}
{{- end }}
{{- with .caSecret }}
- secret:
    name: {{ .name | quote }}
    items:
    - key: {{ .key | default "ca.crt" | quote }}
      path: ca.crt
{{- end }}
{{- with .caConfigMap }}
- configMap:
    name: {{ .name | quote }}
    items:
    - key: {{ .key | default "ca.crt" | quote }}
      path: ca.crt
{{- end }}
{{- with .tokenSecret }}
- secret:
    name: {{ .name | quote }}
    items:
    - key: {{ .key | default "token" | quote }}
      path: token
{{- end }}
{{- end }}
{{- end }}

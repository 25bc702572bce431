{{/* Where the controller finds the endpoints of drift reports, and what they need from Secrets. */}}
{{- define "kausality.reports.folder" -}}
/etc/kausality/reports
{{- end }}

{{/* Each thing that an endpoint may need from a Secret: the value that names it, the field of the controller's file, the file,
and its key in the Secret. */}}
{{- define "kausality.reports.files" -}}
- {value: caSecret, field: caFile, file: ca.crt, key: ca.crt}
- {value: clientCertificateSecret, field: certFile, file: tls.crt, key: tls.crt}
- {value: clientCertificateSecret, field: keyFile, file: tls.key, key: tls.key}
- {value: tokenSecret, field: tokenFile, file: token, key: token}
- {value: hmacKeySecret, field: hmacKeyFile, file: hmac, key: hmac}
{{- end }}

{{/* The file that the controller reads. */}}
{{- define "kausality.reports.endpoints" -}}
{{- $files := include "kausality.reports.files" . | fromYamlArray }}
{{- $folder := include "kausality.reports.folder" . }}
{{- $names := list }}
{{- $endpoints := list }}
{{- range $endpoint := .Values.reports.endpoints }}
{{- if has $endpoint.name $names }}
{{- fail (printf "reports.endpoints: %s is there twice, and names tell endpoints apart" $endpoint.name) }}
{{- end }}
{{- $names = append $names $endpoint.name }}
{{- $entry := pick $endpoint "name" "url" "timeout" "allowInsecure" }}
{{- range $files }}
{{- if hasKey $endpoint .value }}
{{- $_ := set $entry .field (printf "%s/%s/%s" $folder $endpoint.name .file) }}
{{- end }}
{{- end }}
{{- $endpoints = append $endpoints $entry }}
{{- end }}
{{- toYaml (dict "endpoints" $endpoints) }}
{{- end }}

{{/* All of it as one volume. A Secret that changes changes in it: nothing is mounted by subPath. */}}
{{- define "kausality.reports.sources" -}}
{{- $files := include "kausality.reports.files" . | fromYamlArray }}
- configMap:
    name: kausality-report-endpoints
{{- range $endpoint := .Values.reports.endpoints }}
{{- range $file := $files }}
{{- with index $endpoint $file.value }}
- secret:
    name: {{ .name | quote }}
    items:
    - key: {{ .key | default $file.key | quote }}
      path: {{ printf "%s/%s" $endpoint.name $file.file | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The ports at which endpoints listen. */}}
{{- define "kausality.reports.ports" -}}
{{- $ports := .Values.networkPolicy.reports.ports }}
{{- range .Values.reports.endpoints }}
{{- $url := urlParse .url }}
{{- $given := regexFind ":[0-9]+$" $url.host | trimPrefix ":" }}
{{- $ports = append $ports (int ($given | default (ternary "443" "80" (eq $url.scheme "https")))) }}
{{- end }}
{{- toYaml ($ports | uniq) }}
{{- end }}

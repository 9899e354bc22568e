{{/*
The documents of one of the plain manifests (files/), in the namespace of the release. What values say is put
into them: nothing is written twice.
*/}}
{{- define "dovetail-machines.documents" -}}
{{- $root := .root }}
{{- $text := $root.Files.Get (printf "files/%s.yaml" .part) }}
{{- $text = regexReplaceAll "namespace: dovetail\\b" $text (printf "namespace: %s" $root.Release.Namespace) }}
{{- $text = replace "values: [dovetail]" (printf "values: [%s]" $root.Release.Namespace) $text }}
{{- range splitList "\n---\n" $text }}
{{- $document := fromYaml . }}
{{- if eq $document.kind "Deployment" }}
{{- include "dovetail-machines.deployment" (dict "root" $root "document" $document) }}
{{- else if eq $document.kind "CustomResourceDefinition" }}
{{- if $root.Values.crds.keep }}
{{- $_ := set $document.metadata "annotations" (dict "helm.sh/resource-policy" "keep") }}
{{- end }}
{{- else if and $root.Values.webhook.certManager.enabled (hasSuffix "WebhookConfiguration" $document.kind) }}
{{- $certificate := printf "%s/dovetail-webhook" $root.Release.Namespace }}
{{- $_ := set $document.metadata "annotations" (dict "cert-manager.io/inject-ca-from" $certificate) }}
{{- end }}
{{- if not (has $document.kind (default list $.without)) }}
---
{{ toYaml $document }}
{{- end }}
{{- end }}
{{- end }}

{{/* Puts values into the Deployment of the operator. */}}
{{- define "dovetail-machines.deployment" -}}
{{- $values := .root.Values }}
{{- $spec := .document.spec }}
{{- $pod := $spec.template.spec }}
{{- $container := index $pod.containers 0 }}
{{- $_ := set $spec "replicas" $values.replicas }}
{{- with $values.image }}
{{- $separator := hasPrefix "sha256:" .tag | ternary "@" ":" }}
{{- $_ := set $container "image" (empty .tag | ternary .repository (printf "%s%s%s" .repository $separator .tag)) }}
{{- $_ := set $container "imagePullPolicy" .pullPolicy }}
{{- end }}
{{- $secret := dict "name" $values.database.secret "key" $values.database.key }}
{{- $_ := set (index $container.env 0) "valueFrom" (dict "secretKeyRef" $secret) }}
{{- $settings := dict "DOVETAIL_OPERATOR_CLUSTER" $values.cluster "DOVETAIL_OPERATOR_IMAGE" $values.stockImage "DOVETAIL_OPERATOR_LOG_LEVEL" $values.logLevel }}
{{- range $name, $value := $settings }}
{{- if $value }}
{{- $_ := set $container "env" (append $container.env (dict "name" $name "value" $value)) }}
{{- end }}
{{- end }}
{{- if $values.webhook.enabled }}
{{- include "dovetail-machines.serving" (dict "values" $values "pod" $pod "container" $container) }}
{{- end }}
{{- with $values.resources }}{{ $_ := set $container "resources" . }}{{ end }}
{{- with $values.podAnnotations }}{{ $_ := set $spec.template.metadata "annotations" . }}{{ end }}
{{- with $values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end }}
{{- with $values.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end }}
{{- with $values.tolerations }}{{ $_ := set $pod "tolerations" . }}{{ end }}
{{- with $values.affinity }}{{ $_ := set $pod "affinity" . }}{{ end }}
{{- with $values.priorityClassName }}{{ $_ := set $pod "priorityClassName" . }}{{ end }}
{{- end }}

{{/* Has the operator serve the webhook. */}}
{{- define "dovetail-machines.serving" -}}
{{- $arguments := list "--webhook-listen" "0.0.0.0:9443" }}
{{- if .values.webhook.certManager.enabled }}
{{- $arguments = concat $arguments (list "--webhook-certificates" "files" "--webhook-cert" "/etc/dovetail/webhook/tls.crt" "--webhook-key" "/etc/dovetail/webhook/tls.key") }}
{{- $_ := set .pod "volumes" (list (dict "name" "webhook" "secret" (dict "secretName" "dovetail-webhook-tls"))) }}
{{- $_ := set .container "volumeMounts" (list (dict "name" "webhook" "mountPath" "/etc/dovetail/webhook" "readOnly" true)) }}
{{- end }}
{{- $_ := set .container "args" (concat .container.args $arguments) }}
{{- $_ := set .container "ports" (append .container.ports (dict "name" "webhook" "containerPort" 9443)) }}
{{- end }}

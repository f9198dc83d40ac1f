package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	api "quorate.dev/api/v1alpha1"
)

func metadataProblems(m *api.Metadata) []string {
	if m == nil {
		return nil
	}
	var problems []string
	for key, value := range m.Labels {
		if strings.HasPrefix(key, "etcd.quorate.dev/") || strings.HasPrefix(key, "app.kubernetes.io/") {
			problems = append(problems, "spec.additionalMetadata.labels: keys under etcd.quorate.dev/ and app.kubernetes.io/ are written by Quorate; use another prefix")
		}
		if !isLabel(key, value) {
			problems = append(problems, "spec.additionalMetadata.labels: a key is an optional DNS prefix with a slash, and a name; name and value have at most 63 ASCII letters, digits, '-', '_' and '.', and start and end with a letter or digit")
		}
	}
	for key, value := range m.Annotations {
		if strings.HasPrefix(key, "etcd.quorate.dev/") {
			problems = append(problems, "spec.additionalMetadata.annotations: keys under etcd.quorate.dev/ are written by Quorate; use another prefix")
		}
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			problems = append(problems, "spec.additionalMetadata.annotations: a key is an optional DNS prefix with a slash, and a name of at most 63 ASCII letters, digits, '-', '_' and '.'")
		}
		if len(value) > 4096 {
			problems = append(problems, "spec.additionalMetadata.annotations: a value has at most 4096 characters")
		}
	}
	return slices.Sorted(slices.Values(problems))
}

func schedulingProblems(s *api.Scheduling) []string {
	if s == nil {
		return nil
	}
	var problems []string
	for key, value := range s.NodeSelector {
		if !isLabel(key, value) {
			problems = append(problems, "spec.scheduling.nodeSelector: a key is an optional DNS prefix with a slash, and a name; name and value have at most 63 ASCII letters, digits, '-', '_' and '.', and start and end with a letter or digit")
		}
	}
	return slices.Sorted(slices.Values(problems))
}

func isLabel(key, value string) bool {
	return len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0
}

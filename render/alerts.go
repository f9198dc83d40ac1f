package render

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"quorate.dev/templates"
)

// Alerts renders the alerts of Quorate as a rule file for Prometheus. They are those of the
// PrometheusRule in templates/install/monitoring, whose spec has the format of a rule file.
func Alerts() ([]byte, error) {
	raw, err := templates.Install.ReadFile("install/monitoring/prometheusrule.yaml")
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	var rule struct {
		Spec any `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &rule); err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	return yaml.Marshal(rule.Spec)
}

package render

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// schedule writes spec.scheduling, or its defaults, into the spec of a Pod.
func schedule(spec *corev1ac.PodSpecApplyConfiguration, c *api.EtcdCluster) error {
	s := scheduling(c)
	if s.PriorityClassName != "" {
		spec.WithPriorityClassName(s.PriorityClassName)
	}
	if err := nodes(spec, s); err != nil {
		return err
	}
	if err := affinity(spec, c, s.Affinity); err != nil {
		return err
	}
	return spread(spec, c, s.TopologySpreadConstraints)
}

// nodes limits a Pod to the nodes that members may run on.
func nodes(spec *corev1ac.PodSpecApplyConfiguration, s *api.Scheduling) error {
	if len(s.NodeSelector) > 0 {
		spec.WithNodeSelector(maps.Clone(s.NodeSelector))
	}
	for _, t := range s.Tolerations {
		ac, err := applyConfiguration[corev1ac.TolerationApplyConfiguration](t)
		if err != nil {
			return fmt.Errorf("spec.scheduling.tolerations: %w", err)
		}
		spec.WithTolerations(ac)
	}
	return nil
}

// affinity is the user's, or else prefers a node of its own for each member: two on one node fail
// together, but on a cluster of few nodes they must run all the same.
func affinity(spec *corev1ac.PodSpecApplyConfiguration, c *api.EtcdCluster, user *corev1.Affinity) error {
	if user != nil {
		ac, err := applyConfiguration[corev1ac.AffinityApplyConfiguration](user)
		if err != nil {
			return fmt.Errorf("spec.scheduling.affinity: %w", err)
		}
		spec.WithAffinity(ac)
		return nil
	}
	spec.WithAffinity(corev1ac.Affinity().WithPodAntiAffinity(corev1ac.PodAntiAffinity().
		WithPreferredDuringSchedulingIgnoredDuringExecution(corev1ac.WeightedPodAffinityTerm().
			WithWeight(100).
			WithPodAffinityTerm(corev1ac.PodAffinityTerm().
				WithTopologyKey(corev1.LabelHostname).
				WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(c)))))))
	return nil
}

// scheduling is spec.scheduling, in which each constraint says which Pods it counts: those of the
// members where the user does not say.
func scheduling(c *api.EtcdCluster) *api.Scheduling {
	if c.Spec.Scheduling == nil {
		return &api.Scheduling{}
	}
	s := c.Spec.Scheduling.DeepCopy()
	for n := range s.TopologySpreadConstraints {
		if t := &s.TopologySpreadConstraints[n]; t.LabelSelector == nil {
			t.LabelSelector = &metav1.LabelSelector{MatchLabels: Selector(c)}
		}
	}
	return s
}

// spread is the user's constraints, or else spreads over zones where that is possible.
func spread(spec *corev1ac.PodSpecApplyConfiguration, c *api.EtcdCluster, user []corev1.TopologySpreadConstraint) error {
	for _, t := range user {
		ac, err := applyConfiguration[corev1ac.TopologySpreadConstraintApplyConfiguration](t)
		if err != nil {
			return fmt.Errorf("spec.scheduling.topologySpreadConstraints: %w", err)
		}
		spec.WithTopologySpreadConstraints(ac)
	}
	if len(user) > 0 {
		return nil
	}
	spec.WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().
		WithMaxSkew(1).
		WithTopologyKey(corev1.LabelTopologyZone).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(c))))
	return nil
}

// applyConfiguration turns a typed API value, of which users wrote a part, into its
// apply-configuration. Both have the same JSON, and the typed value's leaves out what is empty.
func applyConfiguration[AC any](typed any) (*AC, error) {
	raw, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	ac := new(AC)
	return ac, json.Unmarshal(raw, ac)
}

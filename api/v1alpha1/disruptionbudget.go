package v1alpha1

// DisruptionBudget keeps drains of nodes from evicting a quorum of the members.
type DisruptionBudget struct {
	// mode is Quorum (default): the PodDisruptionBudget allows evictions as long as a quorum of the
	// members stays, and none while Quorate changes a member. A cluster of one or two members
	// allows no eviction: a drain of their nodes waits until the cluster has three members, or none
	// (spec.replicas 0). Disabled: the PodDisruptionBudget selects no Pod. A drain may evict all
	// members at once, unless a budget of your own selects them. A change restarts nothing.
	// +optional
	// +kubebuilder:validation:Enum=Quorum;Disabled
	Mode DisruptionBudgetMode `json:"mode,omitempty"`
}

// DisruptionBudgetMode is whether a disruption budget limits evictions of the members.
type DisruptionBudgetMode string

// The modes.
const (
	DisruptionBudgetQuorum   DisruptionBudgetMode = "Quorum"
	DisruptionBudgetDisabled DisruptionBudgetMode = "Disabled"
)

// BudgetDisabled reports whether no disruption budget of Quorate's selects the members.
func (c *EtcdCluster) BudgetDisabled() bool {
	return c.Spec.DisruptionBudget != nil && c.Spec.DisruptionBudget.Mode == DisruptionBudgetDisabled
}

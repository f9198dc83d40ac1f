package v1alpha1

// DisruptionBudget is what keeps drains of nodes from taking a quorum of the members.
type DisruptionBudget struct {
	// mode is Quorum (default): the PodDisruptionBudget lets a drain take as many members as leave a
	// quorum, and none while Quorate has one away. A cluster of one or two members has none to
	// spare: a drain of a node with one of them waits until the cluster has three, or is stopped.
	// Disabled: the PodDisruptionBudget selects no Pod. Drains take any number of members at once,
	// unless a budget of your own selects them. A change restarts nothing.
	// +optional
	// +kubebuilder:validation:Enum=Quorum;Disabled
	Mode DisruptionBudgetMode `json:"mode,omitempty"`
}

// DisruptionBudgetMode is whether the members of a cluster are kept from drains.
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

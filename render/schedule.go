package render

import (
	"fmt"
	"maps"
	"time"

	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// ScheduledBackup is the EtcdBackup that a schedule makes for a time.
func ScheduledBackup(s *api.EtcdBackupSchedule, at time.Time) (*apiac.EtcdBackupApplyConfiguration, error) {
	template := s.Spec.Template.Spec
	policy := template.DeletionPolicy
	if policy == "" {
		policy = api.RetentionDelete
	}
	spec, err := applyConfiguration[apiac.EtcdBackupSpecApplyConfiguration](api.EtcdBackupSpec{
		ClusterRef:     s.Spec.ClusterRef,
		Store:          template.Store,
		Verify:         template.Verify,
		DeletionPolicy: policy,
		Encryption:     template.Encryption,
	})
	if err != nil {
		return nil, fmt.Errorf("spec.template.spec: %w", err)
	}
	labels := map[string]string{}
	b := apiac.EtcdBackup(s.BackupName(at), s.Namespace).WithSpec(spec)
	if m := s.Spec.Template.Metadata; m != nil {
		maps.Copy(labels, m.Labels)
		b.WithAnnotations(m.Annotations)
	}
	labels[api.LabelSchedule] = s.Name
	return b.WithLabels(labels), nil
}

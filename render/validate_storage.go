package render

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
)

var (
	minSize  = resource.MustParse("256Mi")
	minQuota = resource.MustParse("16Mi")
	maxQuota = resource.MustParse("100Gi")
)

// Countable is false for a quantity such as 1e999999999: it parses, but to compare it with another
// would write all of its digits out first, and take minutes or all memory.
func Countable(q resource.Quantity) bool {
	q = q.DeepCopy() // AsDec changes what it is called on
	scale := q.AsDec().Scale()
	return -30 <= scale && scale <= 30
}

func uncountable(field string) string {
	return field + " is a number that no computer has; write for example 8Gi"
}

func storageProblems(s api.Storage) []string {
	var problems []string
	if !Countable(s.Size) {
		problems = append(problems, uncountable("spec.storage.size"))
	} else if s.Size.Cmp(minSize) < 0 {
		problems = append(problems, "spec.storage.size must be at least 256Mi, for example 8Gi: etcd allocates several write-ahead log files of 64 MiB before the first write")
	}
	if !slices.Contains([]api.Medium{"", api.MediumDisk, api.MediumMemory}, s.Medium) {
		problems = append(problems, "spec.storage.medium must be Disk or Memory")
	}
	if s.Medium == api.MediumMemory && (s.StorageClassName != nil || s.Retention != nil || s.ChangePolicy != "") {
		problems = append(problems, "spec.storage.storageClassName, spec.storage.retention and spec.storage.changePolicy are for volumes; with spec.storage.medium Memory there are none: leave them out")
	}
	if !slices.Contains([]api.ChangePolicy{"", api.ChangeExpand, api.ChangeReplace}, s.ChangePolicy) {
		problems = append(problems, "spec.storage.changePolicy must be Expand or Replace")
	}
	if s.Retention != nil && !slices.Contains([]api.RetentionPolicy{"", api.RetentionRetain, api.RetentionDelete}, s.Retention.WhenDeleted) {
		problems = append(problems, "spec.storage.retention.whenDeleted must be Retain or Delete")
	}
	return problems
}

func quotaProblems(c *api.EtcdCluster) []string {
	o, size := c.Spec.Options, c.Spec.Storage.Size
	if o == nil || o.QuotaBackendSize == nil || !Countable(size) {
		return nil
	}
	quota := *o.QuotaBackendSize
	if !Countable(quota) {
		return []string{uncountable("spec.options.quotaBackendSize")}
	}
	if quota.Cmp(minQuota) < 0 || quota.Cmp(maxQuota) > 0 {
		return []string{"spec.options.quotaBackendSize must be from 16Mi to 100Gi, for example 2Gi"}
	}
	if quota.Cmp(size) < 0 {
		return nil
	}
	return []string{"spec.options.quotaBackendSize must be smaller than spec.storage.size, best less than half of it: the volume also holds the write-ahead log, snapshots and the copy that a defragmentation makes"}
}

func resourcesProblems(r *api.Resources) []string {
	if r == nil {
		return nil
	}
	takes := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	foreign := func(list corev1.ResourceList) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(list)), func(name corev1.ResourceName) bool {
			return !slices.Contains(takes, name)
		})
	}
	var problems []string
	if foreign(r.Requests) {
		problems = append(problems, "spec.resources.requests takes cpu, memory and ephemeral-storage, for example cpu: 500m and memory: 1Gi")
	}
	if foreign(r.Limits) {
		problems = append(problems, "spec.resources.limits takes cpu, memory and ephemeral-storage, for example cpu: 500m and memory: 1Gi")
	}
	for _, q := range slices.Concat(slices.Collect(maps.Values(r.Requests)), slices.Collect(maps.Values(r.Limits))) {
		if !Countable(q) {
			return append(problems, uncountable("a quantity of resources"))
		}
	}
	for name, request := range r.Requests {
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			return append(problems, "spec.resources.requests must not be more than spec.resources.limits: raise the limit or lower the request")
		}
	}
	return problems
}

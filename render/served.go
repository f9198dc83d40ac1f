package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "quorate.dev/api/v1alpha1"
)

// served are the parts of the spec that a Pod is made of, and the version that it ran.
type served struct {
	Version    string          `json:"version"`
	Image      *api.Image      `json:"image,omitempty"`
	Resources  *api.Resources  `json:"resources,omitempty"`
	Options    *api.Options    `json:"options,omitempty"`
	Pod        *api.Pod        `json:"pod,omitempty"` // without its metadata, which comes to a Pod that runs
	Scheduling *api.Scheduling `json:"scheduling,omitempty"`
	TLS        *api.ClientTLS  `json:"tls,omitempty"` // the clients' port, without what goes into certificates

	// Metadata are the labels and annotations of the spec with which the API server took the Pod.
	Metadata *api.Metadata `json:"metadata,omitempty"`
}

// mostServed bounds what is kept of a spec. All annotations of an object together may have four
// times as much, and a member whose spec is larger must not go without those that say whose data it
// holds.
const mostServed = 64 << 10

// Served is what the claim of a member is to say that serves with what the spec asks for
// (AnnotationServed): what it says already, where that is the same, or where it cannot say more.
func Served(c *api.EtcdCluster, said string) string {
	if before, ok := AsServed(c, said); ok && saysPort(said) && sameVersion(before.Spec.Version, c.Spec.Version) && slices.Equal(revision(before), revision(c)) {
		return said
	}
	now := recorded(c)
	now.Metadata = servedMetadata(said)
	raw, err := json.Marshal(now)
	if len(raw) > mostServed {
		raw, err = json.Marshal(recorded(c))
	}
	if err != nil || len(raw) > mostServed { // ValidateServed refuses it: what was proved before is what there is to go back to
		return said
	}
	return string(raw)
}

func recorded(c *api.EtcdCluster) served {
	s := c.Spec
	return served{Version: s.Version, Image: s.Image, Resources: s.Resources, Options: s.Options, Pod: servedPod(c), Scheduling: s.Scheduling, TLS: servedPort(c)}
}

// tooLarge says which part of a spec takes most where a volume has no room for it.
func tooLarge(c *api.EtcdCluster) error {
	s := recorded(c)
	size := func(part any) int {
		raw, _ := json.Marshal(part) // plain values
		return len(raw)
	}
	all := size(s)
	if all <= mostServed {
		return nil
	}
	parts := map[string]int{"image": size(s.Image), "resources": size(s.Resources), "options": size(s.Options), "pod": size(s.Pod), "scheduling": size(s.Scheduling)}
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(parts)), func(a, b string) int { return cmp.Compare(parts[a], parts[b]) })
	return fmt.Errorf("spec.%s is too large, with %d bytes as JSON: make it smaller. Together spec.image, resources, options, pod, scheduling and tls.client have %d bytes; the limit is %d, because the claim of each member keeps a copy for a rollback", largest, parts[largest], all, mostServed)
}

// Said is the record of what a member has served with, or is being changed to (AnnotationServed,
// AnnotationNextWith), with what it served clients. Builds in which that could not be changed did
// not name it: it was in the mode that the claim records, if it records one.
func Said(record string, claim *corev1.PersistentVolumeClaim) string {
	mode := RecordedModes(claim).Client
	fields, object := strings.CutSuffix(record, "}")
	if mode != api.TLSManaged && mode != api.TLSDisabled || saysPort(record) || !object || fields == "{" || !json.Valid([]byte(record)) {
		return record
	}
	named := fields + `,"tls":{"mode":"` + string(mode) + `"}}`
	if len(named) > mostServed {
		return record
	}
	return named
}

// saysPort reports whether a record names what was served to clients.
func saysPort(record string) bool {
	var s struct {
		TLS *struct{} `json:"tls"`
	}
	return len(record) <= mostServed && json.Unmarshal([]byte(record), &s) == nil && s.TLS != nil
}

// servedPod is spec.pod without its metadata; nil where nothing else is asked for.
func servedPod(c *api.EtcdCluster) *api.Pod {
	account, users := serviceAccount(c), asksUsers(c)
	if account == "" && users == nil {
		return nil
	}
	return &api.Pod{ServiceAccountName: account, SecurityContext: users}
}

// Differing are the parts of which Pods are made in which two specs differ, in the order of their
// names.
func Differing(a, b *api.EtcdCluster) []string {
	var differ []string
	others := revision(b)
	for _, p := range revision(a) {
		if p.hash != others.hashOf(p.name) {
			differ = append(differ, p.name)
		}
	}
	return differ
}

// AsServed is the EtcdCluster as the Pod of a member was made of it that served with what its claim
// says (Said); false where that says nothing.
func AsServed(c *api.EtcdCluster, said string) (*api.EtcdCluster, bool) {
	s, ok := readServed(said)
	if !ok {
		return nil, false
	}
	port := c.ClientPort() // where none is named, the one in force
	if s.TLS != nil {
		port = *s.TLS
	}
	if !keptPort(port) {
		return nil, false
	}
	c = WithClientPort(c, port)
	c.Spec.Version, c.Spec.Image, c.Spec.Resources, c.Spec.Options, c.Spec.Scheduling = s.Version, s.Image, s.Resources, s.Options, s.Scheduling
	metadata := podMetadata(c)
	if c.Spec.Pod = s.Pod; s.Pod != nil || metadata != nil {
		c.Spec.Pod = new(ptr.Deref(s.Pod, api.Pod{}))
		c.Spec.Pod.Metadata = metadata // also where the annotation says something else
	}
	return c, true
}

// readServed reads a record; false where it says nothing, or what Quorate never wrote.
func readServed(record string) (s served, ok bool) {
	ok = record != "" && len(record) <= mostServed && json.Unmarshal([]byte(record), &servedQuantities{}) == nil && json.Unmarshal([]byte(record), &s) == nil
	return s, ok
}

// servedQuantities are those of served, of which only the form is read. A person who may write
// annotations may write 1e-100000000, which takes a minute to parse, and the schema judges the spec
// alone.
type servedQuantities struct {
	Resources struct {
		Requests, Limits map[string]formed
	}
	Options struct {
		QuotaBackendSize formed
	}
}

// formed is a quantity that is written as one is that came through the schema.
type formed struct{}

var quantityForm = regexp.MustCompile(`^"?[0-9]{1,40}([.][0-9]{1,40})?([numk]|[KMGTPE]i?|[eE][+-]?[0-9]{1,2})?"?$`)

func (formed) UnmarshalJSON(raw []byte) error {
	if !quantityForm.Match(raw) {
		return fmt.Errorf("quantity of %d characters is not as the spec has it", len(raw))
	}
	return nil
}

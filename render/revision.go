package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"

	api "quorate.dev/api/v1alpha1"
)

// part is one part of the spec that a Pod is made of, and a hash of its effective value. The hash
// is empty for the zero value of a part that came after the first release: a Pod whose record does
// not name such a part was made of its zero value, and stays.
type part struct{ name, hash string }

// parts are in the order of their names. As text, name=hash and commas between, they are a Pod's
// AnnotationRevision. Those without a hash are left out.
type parts []part

// newest has the names of flags that go into a revision: a flag that was only renamed is the same.
var newest = version.MustParseGeneric("3.7.0")

// imageAsked is spec.image as it is hashed. Of the digests it has that of spec.version alone: those
// of other versions are compared with the image that a member of these versions has. A field that
// is empty leaves the hash as it was before there was such a field.
type imageAsked struct {
	Repository  string                `json:"repository,omitempty"`
	Digest      string                `json:"digest,omitempty"`
	PullPolicy  corev1.PullPolicy     `json:"pullPolicy,omitempty"`
	PullSecrets []api.SecretReference `json:"pullSecrets,omitempty"`
	Tag         string                `json:"tag,omitempty"`
}

// revision hashes what the user asks for, not what is rendered of it: a new release of Quorate that
// renders a better Pod must not make all running ones outdated. Defaults are filled in and
// quantities made canonical first, so that writing a default out, or 1024Mi for 1Gi, changes
// nothing. The version is no part: it is compared as a version.
func revision(c *api.EtcdCluster) parts {
	s := c.Spec
	image := imageAsked{Repository: imageRepository(c), PullPolicy: pullPolicy(c), Digest: imageDigest(c, s.Version)}
	if s.Image != nil {
		image.PullSecrets = s.Image.PullSecrets
	}
	if tag := imageTag(c); tag != defaultTag {
		image.Tag = tag
	}
	storage := map[string]string{} // a claim is no part of the Pod, but for its name
	if inMemory(c) {
		storage["sizeLimit"] = canonicalQuantity(s.Storage.Size)
	}
	resources := api.Resources{}
	if s.Resources != nil {
		resources = *s.Resources
	}
	return append(parts{
		{"image", hash(image)},
		{"options", hash(optionArgs(s.Options, newest))},
		{"pod", podHash(c)},
		{"resources", hash([]any{canonical(resources.Requests), canonical(resources.Limits)})},
		{"scheduling", hash(*scheduling(c))},
		{"storage", hash(storage)},
	}, tlsParts(c)...)
}

// podHash is that of spec.pod without its metadata, which comes to a Pod that runs.
func podHash(c *api.EtcdCluster) string {
	account, users := serviceAccount(c), asksUsers(c)
	if account == "" && users == nil {
		return ""
	}
	return hash([]any{account, users})
}

// tlsParts are the parts for TLS, in the order of their names.
func tlsParts(c *api.EtcdCluster) parts {
	all := append(trusts(c), part{PartClientPort, clientPortText(c, c.ClientPort())})
	slices.SortFunc(all, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return all
}

// trusts are the parts for the authorities that a member trusts, of which it learns at its start
// alone. Pods of a cluster whose authority has not been rotated yet have none: they trust the first
// one. With another mode than Managed no authority is asked for by the status.
func trusts(c *api.EtcdCluster) parts {
	var all parts
	if t := c.Status.TLS; t != nil && len(t.Client.Trusts) > 0 && c.ClientTLSMode() == api.TLSManaged {
		all = append(all, part{PartClientTrust, hash(t.Client.Trusts)})
	}
	if t := c.Status.TLS; t != nil && len(t.Peer.Trusts) > 0 {
		all = append(all, part{PartPeerTrust, hash(t.Peer.Trusts)})
	}
	return all
}

// The parts of a revision for the authorities that members trust: those of the clients' port, and
// those of the members' port.
const (
	PartClientTrust = "tls.client"
	PartPeerTrust   = "tls.peer"
)

// Outdated names the parts of the spec that differ from those the Pod was made of, in the order of
// their names. The version is none of them.
func Outdated(c *api.EtcdCluster, pod *corev1.Pod) []string {
	made := map[string]string{}
	for field := range strings.SplitSeq(pod.Annotations[api.AnnotationRevision], ",") {
		name, hash, _ := strings.Cut(field, "=")
		made[name] = hash
	}
	made[PartClientPort] = clientPortText(c, ClientPort(c, pod))
	var outdated []string
	for _, p := range revision(c) {
		if made[p.name] != p.hash && (p.name != "options" || made[p.name] != optionsAsWritten(c)) {
			outdated = append(outdated, p.name)
		}
	}
	return outdated
}

// Trusts reports whether a Pod was made to trust the authorities that the status names, in one of
// the two parts. Its etcd trusts what the Secrets held at the last start of the container, and they
// held that before the Pod was made.
func Trusts(c *api.EtcdCluster, pod *corev1.Pod, part string) bool {
	return !slices.Contains(Outdated(c, pod), part)
}

// optionsAsWritten is the hash of the options on Pods of Quorate's first days: it has the flags
// under the names that the spec gives them, which are those of its version.
func optionsAsWritten(c *api.EtcdCluster) string {
	v, err := parseVersion(c.Spec.Version)
	if err != nil {
		return ""
	}
	return hash(optionArgs(c.Spec.Options, v))
}

// String is the form of AnnotationRevision.
func (ps parts) String() string {
	fields := make([]string, 0, len(ps))
	for _, p := range ps {
		if p.hash != "" {
			fields = append(fields, p.name+"="+p.hash)
		}
	}
	return strings.Join(fields, ",")
}

// hash is short: it tells one spec from the next, and is no protection against an attacker.
func hash(value any) string {
	raw, err := json.Marshal(value)
	if err != nil { // values decoded from JSON can be encoded again
		return "unknown"
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:4])
}

// canonical writes equal quantities equally: 1Gi, 1024Mi and 1073741824 are one.
func canonical(list corev1.ResourceList) map[string]string {
	text := make(map[string]string, len(list))
	for name, q := range list {
		text[string(name)] = canonicalQuantity(q)
	}
	return text
}

func canonicalQuantity(q resource.Quantity) string {
	q = q.DeepCopy() // AsDec changes what it is called on
	return resource.NewDecimalQuantity(*q.AsDec(), resource.DecimalSI).String()
}

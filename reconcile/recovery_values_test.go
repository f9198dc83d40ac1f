package reconcile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Values of every field of an EtcdCluster's spec that are extreme, or wrong and accepted: of
// TestRecovery. Where the schema tells the ends of a field they are generated, and the others are
// written down here.

// bad is such a value. What its spec says otherwise is that of any other walk.
type bad struct {
	path  string // of the field in the spec
	value string // as JSON
	patch string // of the spec (RFC 7396); made of path and value where it is empty
	base  string // patch of the spec before that; empty for none
	back  string // patch of the spec before, with which it is reverted; empty where it is reverted as it was
	says  string // what the status says where it stalls; empty: the name of the field, or of what holds it
	never bool   // no member can run with it: the status must say so
	asks  bool   // claims go on asking for it when it is taken back: Kubernetes makes none of them smaller
	same  bool   // as where it is not set: volumes may go on saying that their members serve with it
	away  bool   // the cluster may not serve meanwhile, as the field's own comment says

	newPods bool // it needs new Pods: with data in memory, members that join meanwhile keep it when the spec is reverted

	elects time.Duration // an election takes as long with it: the cluster may be away for so much longer
}

// name of the walks with it: nothing that -chaos.plan reads as more than one name.
func (b bad) name() string {
	name := b.path + "=" + strings.Trim(b.value, `"`)
	if b.base != "" {
		name += "@" + b.base
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/,+ "{}[]`, r) {
			return '_'
		}
		return r
	}, name)
}

// spec is the patch that sets it.
func (b bad) spec() string {
	if b.patch != "" {
		return b.patch
	}
	fields := strings.Split(b.path, ".")
	patch := b.value
	for _, field := range slices.Backward(fields) {
		patch = fmt.Sprintf("{%q:%s}", field, patch)
	}
	return patch
}

// told reports whether a message names it: by what it is, or by the part of the spec that holds it.
func (b bad) told(message string) bool {
	if b.says != "" {
		return strings.Contains(message, b.says)
	}
	part, _, _ := strings.Cut(b.path, ".")
	return strings.Contains(message, "spec."+part) || strings.Contains(message, part+".")
}

// flags of etcd 3.6 that may be set, by what their values are.
var (
	counts = strings.Fields(`backend-batch-limit bootstrap-defrag-threshold-megabytes compaction-batch-limit
		distributed-tracing-sampling-rate max-concurrent-streams max-request-bytes max-snapshots max-txn-ops max-wals
		snapshot-catchup-entries`)
	spans = strings.Fields(`backend-batch-interval compact-hash-check-time compaction-sleep-interval corrupt-check-time
		downgrade-check-time grpc-keepalive-interval grpc-keepalive-min-time grpc-keepalive-timeout raft-read-timeout
		raft-write-timeout warning-apply-duration warning-unary-request-duration watch-progress-notify-interval`)
	switches = strings.Fields(`enable-distributed-tracing enable-grpc-gateway enable-pprof initial-election-tick-advance
		memory-mlock pre-vote socket-reuse-address socket-reuse-port`)
)

// badFlags are the ends of every flag.
func badFlags() []bad {
	var all []bad
	add := func(flag string, values ...string) {
		for _, value := range values {
			b := bad{
				path: "options.flags." + flag, value: fmt.Sprintf("%q", value), says: "spec.options",
				patch: fmt.Sprintf(`{"options":{"flags":{%q:%q}}}`, flag, value),
			}
			if optionsProblem(flag, value, "3.6.16") != nil {
				b.says, b.never = flag+" must be", true
			}
			all = append(all, b)
		}
	}
	for _, flag := range counts {
		add(flag, "0", "1", "4294967295")
	}
	for _, flag := range spans {
		add(flag, "0s", "1ns", "2562047h")
	}
	for _, flag := range switches {
		add(flag, "true", "false")
	}
	add("backend-bbolt-freelist-type", "array")
	add("cors", "nowhere")
	add("host-whitelist", "nowhere.example.com")
	add("distributed-tracing-address", "nowhere.example.com:1")
	add("log-level", "debug", "fatal")
	add("log-format", "console")
	add("metrics", "extensive")
	return all
}

// inMemory is the base of clusters whose data goes with their Pods.
const inMemory = `{"storage":{"medium":"Memory"},"resources":{"limits":{"cpu":"2","memory":"1Gi"}}}`

// byHand are values of fields of which the schema tells no ends, and those that are known to hurt.
func byHand() []bad {
	all := []bad{
		{path: "version", value: `"3.6.99"`, says: "3.6.99", never: true},
		{path: "version", value: `"3.5.20"`, says: "3.5.20", never: true},
		{path: "version", value: `"3.7.3"`},
		{path: "version", value: `"3.5.35"`},
		{path: "image.repository", value: `"registry.example.com/etcd"`, says: "registry.example.com"},
		{path: "image.digests", value: `[{"version":"3.6.16","digest":"sha256:` + strings.Repeat("0", 64) + `"}]`, says: "image"},
		{path: "image.tag", value: `"{version}"`},
		{path: "image.tag", value: `"{version}-nowhere"`, says: "image", never: true},
		{path: "image.pullSecrets", value: `[{"name":"nowhere"}]`},

		{path: "options.flags.max-request-bytes", value: `"511"`, patch: `{"options":{"flags":{"max-request-bytes":"511"}}}`, says: "max-request-bytes must be", never: true},
		{path: "options.flags.cors", value: `"http://mute:1"`, patch: `{"options":{"flags":{"cors":"http://mute:1"}}}`, says: "spec.options", never: true}, // mutable
		{path: "options.flags.no-such-flag", value: `"1"`, patch: `{"options":{"flags":{"no-such-flag":"1"}}}`, says: "no-such-flag", never: true},
		{path: "options.flags.max-txn-ops", value: `"many"`, patch: `{"options":{"flags":{"max-txn-ops":"many"}}}`, says: "max-txn-ops", never: true},
		{path: "options.heartbeatInterval", value: `"1ms"`},
		{path: "options.heartbeatInterval", value: `"10s"`, patch: `{"options":{"heartbeatInterval":"10s","electionTimeout":"50s"}}`, says: "spec.options", elects: 2 * 50 * time.Second},
		{path: "options.electionTimeout", value: `"100ms"`, patch: `{"options":{"heartbeatInterval":"20ms","electionTimeout":"100ms"}}`, says: "spec.options", away: true}, // processors of a test are busy: it elects
		{path: "options.electionTimeout", value: `"50s"`, says: "spec.options", elects: 2 * 50 * time.Second},
		{path: "options.quotaBackendSize", value: `"16Mi"`, says: "quota"},
		{path: "options.quotaBackendSize", value: `"1023Mi"`, says: "quota"},
		{path: "options.autoCompaction.retention", value: `"1"`, patch: `{"options":{"autoCompaction":{"mode":"Revision","retention":"1"}}}`},
		{path: "options.autoCompaction.retention", value: `"9999999999999999"`, patch: `{"options":{"autoCompaction":{"mode":"Revision","retention":"9999999999999999"}}}`, says: "spec.options"},

		{path: "resources.limits", value: `{"memory":"1Mi"}`, says: "spec.resources", never: true},
		{path: "resources.limits", value: `{"cpu":"1m"}`, says: "spec.resources"},
		{path: "resources.limits", value: `{"memory":"1Pi","cpu":"1k"}`, says: "spec.resources"},
		{path: "resources.requests", value: `{"cpu":"1k"}`, says: "spec.resources"},
		{path: "resources.requests", value: `{"memory":"1Ki","cpu":"1m"}`, says: "spec.resources"},

		{path: "scheduling.nodeSelector", value: `{"kubernetes.io/os":"windows"}`, says: "spec.scheduling", never: true},
		{path: "scheduling.priorityClassName", value: `"nowhere"`, says: "spec.scheduling", never: true},
		{path: "scheduling.tolerations", value: `[{"operator":"Exists"}]`},
		{path: "scheduling.affinity", value: `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"nowhere","labelSelector":{}}]}}`},
		{path: "scheduling.affinity", value: `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"","labelSelector":{}}]}}`, says: "topologyKey", never: true},
		{path: "scheduling.topologySpreadConstraints", value: `[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]`},
		{path: "scheduling.topologySpreadConstraints", value: `[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"}]`},
		{path: "scheduling.topologySpreadConstraints", value: `[{"maxSkew":0,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]`, says: "maxSkew", never: true},

		{path: "pod.metadata.labels", value: `{"example.com/label":"value"}`},
		{path: "pod.metadata.annotations", value: fmt.Sprintf(`{"example.com/long":%q}`, strings.Repeat("a", 4096))},
		{path: "pod.serviceAccountName", value: `"nowhere"`, says: "spec.pod"},
		{path: "pod.securityContext", value: `{}`, says: "spec.pod"},
		{path: "pod.securityContext.supplementalGroups", value: `[0,2147483647]`, says: "spec.pod"},

		{path: "services.client.metadata.labels", value: `{"example.com/label":"value"}`},
		{path: "services.client.metadata.annotations", value: `{"example.com/annotation":"value"}`},
		{path: "services.client.loadBalancerClass", value: `"example.com/nowhere"`, patch: `{"services":{"client":{"type":"LoadBalancer","loadBalancerClass":"example.com/nowhere"}}}`},
		{path: "services.client.ipFamilies", value: `["IPv6"]`, says: "ipFamilies"},
		{path: "services.client.ipFamilyPolicy", value: `"RequireDualStack"`, says: "ipFamilyPolicy"},
		{path: "services.headless.metadata.labels", value: `{"example.com/label":"value"}`},
		{path: "services.headless.metadata.annotations", value: `{"example.com/annotation":"value"}`},

		{path: "additionalMetadata.labels", value: `{"example.com/label":"value"}`},
		{path: "additionalMetadata.annotations", value: fmt.Sprintf(`{"example.com/long":%q}`, strings.Repeat("a", 4096))},

		{path: "storage.size", value: `"2Gi"`, says: "storage", never: true, back: `{"storage":{"changePolicy":"Replace"}}`},
		{path: "storage.size", value: `"2Gi"`, base: `{"storage":{"storageClassName":"expandable"}}`, back: `{"storage":{"storageClassName":"expandable","changePolicy":"Replace"}}`, says: "storage"},
		{path: "storage.size", value: `"2Gi"`, base: `{"storage":{"storageClassName":"refusing"}}`, back: `{"storage":{"storageClassName":"refusing","changePolicy":"Replace"}}`, says: "storage", never: true, asks: true},
		{path: "storage.size", value: `"256Mi"`, base: `{"storage":{"changePolicy":"Replace"}}`, says: "storage"},
		{path: "storage.storageClassName", value: `"nowhere"`, base: `{"storage":{"changePolicy":"Replace","storageClassName":"standard"}}`, says: "nowhere", never: true},
	}
	for _, b := range []bad{
		{path: "version", value: `"3.6.99"`, says: "3.6.99", never: true},
		{path: "version", value: `"3.7.3"`},
		{path: "image.repository", value: `"registry.example.com/etcd"`, says: "registry.example.com"},
		{path: "image.digests", value: `[{"version":"3.6.16","digest":"sha256:` + strings.Repeat("0", 64) + `"}]`, says: "image"},
		{path: "resources.limits", value: `{"cpu":"1m"}`, says: "spec.resources"},
		{path: "resources.limits", value: `{"cpu":"1k"}`, says: "spec.resources"},
		{path: "resources.limits", value: `{"memory":"1Pi"}`, says: "spec.resources", newPods: true},
		{path: "resources.limits", value: `{"memory":"1Mi"}`, says: "spec.resources", never: true, newPods: true},
		{path: "options.snapshotCount", value: `5000`, says: "spec.options", never: true, newPods: true},
		{path: "scheduling.nodeSelector", value: `{"kubernetes.io/os":"windows"}`, says: "spec.scheduling", never: true, newPods: true},
	} {
		b.base = inMemory
		all = append(all, b)
	}
	all = append(all, bad{path: "recovery.replaceAfter", value: `"Never"`}, bad{path: "recovery.replaceAfter", value: `"1m30s"`})
	for _, field := range []string{"replaceAfter", "replaceEmptyAfter", "quorumLossAfter"} {
		for _, value := range []string{"10s", "24h"} {
			all = append(all, bad{path: "recovery." + field, value: fmt.Sprintf("%q", value)})
		}
	}
	return all
}

// exempt are the fields that no walk sets, and why.
var exempt = map[string]string{
	"auth":      "it is no part of a member, and needs TLS for clients (TestUsers, TestUsersBad)",
	"backup":    "it changes no member, and its stores need agents: TestSnapshotFirst, TestSnapshotFirstRefused",
	"bootstrap": "it cannot be changed once the cluster has formed: TestFromSnapshotWrong",
	"tls":       "its modes need Secrets, which members read by themselves: TestOwnSecrets, TestOwnCertificates, TestSwitch, TestSwitchOwn",
}

// subtrees are fields of Kubernetes' own types, which are set as a whole.
var subtrees = []string{"scheduling.affinity", "scheduling.topologySpreadConstraints", "scheduling.tolerations", "image.pullSecrets", "image.digests", "resources.limits", "resources.requests"}

// specSchema is the schema of the spec.
func specSchema() (apiextensionsv1.JSONSchemaProps, error) {
	raw, err := os.ReadFile("../templates/install/crd/etcd.quorate.dev_etcdclusters.yaml")
	if err != nil {
		return apiextensionsv1.JSONSchemaProps{}, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		return apiextensionsv1.JSONSchemaProps{}, err
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], nil
}

// leaves are the fields that hold a value.
func leaves(path string, s apiextensionsv1.JSONSchemaProps) map[string]apiextensionsv1.JSONSchemaProps {
	if len(s.Properties) == 0 || slices.Contains(subtrees, path) || exempt[path] != "" {
		return map[string]apiextensionsv1.JSONSchemaProps{path: s}
	}
	all := map[string]apiextensionsv1.JSONSchemaProps{}
	for name, field := range s.Properties {
		maps.Copy(all, leaves(strings.TrimPrefix(path+"."+name, "."), field))
	}
	return all
}

// extremes of a field, as its schema tells them.
func extremes(path string, s apiextensionsv1.JSONSchemaProps) []bad {
	var all []bad
	add := func(value any) {
		raw, err := json.Marshal(value)
		if err != nil {
			panic(err) // they are plain values
		}
		all = append(all, bad{path: path, value: string(raw)})
	}
	for _, one := range s.Enum {
		all = append(all, bad{path: path, value: string(one.Raw)})
	}
	for _, end := range []*float64{s.Minimum, s.Maximum} {
		if end != nil {
			add(int64(*end))
		}
	}
	if s.Type == "boolean" {
		add(true)
		add(false)
	}
	return all
}

// allBad are all of them, each once.
func allBad() ([]bad, error) {
	spec, err := specSchema()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(byHand(), badFlags())
	for path, s := range leaves("", spec) {
		if exempt[path] == "" {
			all = append(all, extremes(path, s)...)
		}
	}
	for n := range all {
		switch b := &all[n]; b.path {
		case "replicas":
			b.away = b.value == "0"
		case "image.pullPolicy":
			b.same = b.value == `"IfNotPresent"`
		case "options.autoCompaction.mode":
			b.patch = fmt.Sprintf(`{"options":{"autoCompaction":{"mode":%s,"retention":%s}}}`, b.value, map[string]string{`"Periodic"`: `"999999h"`, `"Revision"`: `"9999999999"`}[b.value])
		}
	}
	slices.SortStableFunc(all, func(a, b bad) int { return strings.Compare(a.name(), b.name()) })
	return slices.CompactFunc(all, func(a, b bad) bool { return a.name() == b.name() }), nil
}

// TestRecoveryValues: no field of the spec is left out of TestRecovery without a reason.
func TestRecoveryValues(t *testing.T) {
	t.Parallel()
	spec, err := specSchema()
	if err != nil {
		t.Fatal(err)
	}
	all, err := allBad()
	if err != nil {
		t.Fatal(err)
	}
	fields := leaves("", spec)
	if len(fields) < 30 { // a walk that goes astray must not pass
		t.Errorf("the schema of the spec has %d fields only", len(fields))
	}
	for path := range fields {
		if exempt[path] == "" && !slices.ContainsFunc(all, func(b bad) bool { return b.path == path || strings.HasPrefix(b.path, path+".") }) {
			t.Errorf("no walk sets spec.%s: add a value to byHand, or a reason to exempt", path)
		}
	}
	for _, b := range all {
		if !json.Valid([]byte(b.spec())) {
			t.Errorf("%s: the patch is no JSON: %s", b.name(), b.spec())
		}
	}
}

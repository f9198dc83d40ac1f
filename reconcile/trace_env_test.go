//go:build env

package reconcile_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/e2e/share"
	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

// tracer records the effects that an operator has on members, one at a time, each with a look past
// the cache right before it.
type tracer struct {
	*stage
	operator *reconcile.Reconciler

	mu      sync.Mutex
	entries []traceEntry
}

// traceEntry is as package membership reads it.
type traceEntry struct {
	Desired  membership.Desired
	Observed membership.Observed
	Effect   string // "AddLearner db-3", "apply Pod db-3"
	Outcome  string
	Answer   string `json:",omitempty"`
}

// errPassed: between the operator's look and ours something has happened that leads to another
// step.
var errPassed = errors.New("the facts have changed")

// do has the effect, and records it. Writes to objects that belong to no member are none. A call to
// etcd to which the look does not lead is not made: the operator looks again, and either decides
// otherwise or is back.
func (t *tracer) do(what string, effect func() error) error {
	verb, object, _ := strings.Cut(what, ".")
	kind, name, _ := strings.Cut(object, ".")
	switch kind {
	case "Member":
		what = verb + " " + name
	case "Pod", "PersistentVolumeClaim":
		what = verb + " " + kind + " " + name
	default:
		return effect()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.look()
	if err != nil {
		return err
	}
	step := membership.Plan(e.Desired, e.Observed)
	if kind == "Member" && !slices.Equal(strings.Fields(what), append([]string{string(step.Action)}, step.Members...)) {
		return later(errPassed)
	}
	err = effect()
	e.Effect = what
	e.Outcome, e.Answer = outcome(err)
	t.entries = append(t.entries, e)
	return err
}

func (t *tracer) look() (traceEntry, error) {
	d, o, err := t.operator.Look(t.Context(), client.ObjectKey{Namespace: t.ns, Name: "db"})
	return traceEntry{Desired: d, Observed: o}, err
}

// outcome of an effect, with the answer of etcd, word for word.
func outcome(err error) (outcome, answer string) {
	var etcd rpctypes.EtcdError
	switch {
	case err == nil:
		return "done", ""
	case errors.As(err, &etcd) && !errors.Is(err, membership.ErrUnanswered):
		return "refused", etcd.Error()
	default: // of the API server it does not matter: the next look tells
		return "unanswered", err.Error()
	}
}

// tracedLife is a life on one version of etcd.
type tracedLife struct{ life, version string }

func (l tracedLife) String() string { return l.life + "-" + l.version }

func traced() []tracedLife {
	var all []tracedLife
	for _, life := range []string{"resize", "lead", "late", "heal"} {
		for _, version := range []string{etcd35, etcd36, etcd37} {
			all = append(all, tracedLife{life, version})
		}
	}
	return all
}

// TestTrace holds the model that package membership explores against what etcd and Kubernetes do:
// each state that is seen, and each effect with its outcome, is one of the model.
func TestTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Run("Recorded", func(t *testing.T) {
		for _, row := range share.List(t, traced(), 2, tracedLife.String) {
			t.Run(row.String(), func(t *testing.T) {
				s := newStage(t)
				s.version = row.version
				f, trace := newFault("", ""), &tracer{stage: s}
				f.around = trace.do
				s.operate(f.between, func(r *reconcile.Reconciler) { trace.operator = r })
				c, kept := lives[row.life].run(s, f)
				s.settled(c, kept)
				end, err := trace.look()
				s.must(err)
				trace.mu.Lock()
				defer trace.mu.Unlock()
				raw, err := json.MarshalIndent(append(trace.entries, end), "", " ")
				s.must(err)
				s.must(os.WriteFile(filepath.Join(dir, row.String()+".json"), raw, 0o600))
			})
		}
	})
	// The model is test code of that package, and can be reached from nowhere else. That it is read
	// makes go test run this again when it has changed.
	const model = "../membership"
	if _, err := os.ReadDir(model); err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-v", "-run=^TestTracesRecorded$", ".", "-traces="+dir)
	check.Dir = model
	said, err := check.CombinedOutput()
	t.Logf("%s", said)
	if err != nil {
		t.Errorf("what was seen is not in the model: %v", err)
	}
}

//go:build env

package reconcile_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quorate.dev/e2e/share"
)

// crashesFor is how long TestCrash begins plans that need not be, beside other tests.
const crashesFor = 30 * time.Second

// plan is one disturbance: a life, the effect that is disturbed in it, and how.
type plan struct {
	life   string
	effect string
	mode   mode
}

func (p plan) String() string { return p.life + "/" + p.effect + "/" + string(p.mode) }

// run fails unless the end is that of the undisturbed run, and no client was told what is not so.
func (p plan) run(t *testing.T, want []string) ending { return together{p}.run(t, want, nil)[0] }

// undisturbed runs each of the lives once, and returns its effects and its end.
func undisturbed(t *testing.T, names ...string) (effects, ends map[string][]string) {
	effects, ends = map[string][]string{}, map[string][]string{}
	var mu sync.Mutex
	t.Run("Reference", func(t *testing.T) {
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				s := newStage(t, agents)
				s.backsUp = lives[name].backsUp
				f := newFault("", "")
				s.disturb(f)
				s.operate(f.between)
				c, _ := lives[name].play(s, f)
				mu.Lock()
				defer mu.Unlock()
				effects[name], ends[name] = f.effects(), s.picture(c)
				t.Logf("%s: %d effects: %v", lives[name].reason, len(effects[name]), effects[name])
			})
		}
	})
	for _, name := range names {
		if len(effects[name]) == 0 {
			t.Fatalf("the reference run of %s had no effect", name)
		}
	}
	return effects, ends
}

// etcdDisturbed are the lives of which a share has each call to etcd disturbed in every run: such a
// call cannot be undone.
var etcdDisturbed = []string{"wake", "grow", "shrink", "heal", "upgrade", "down", "options", "cpu", "mend", "move"}

// requiredPlans are in every run: each call to etcd of the disturbed lives in every mode of a
// crash; one call of every kind that these do not make, in each of these modes; and one effect of
// every other kind, in lives and modes by chance. A plan by chance may have a spare of its kind,
// for where it meets nothing.
func requiredPlans(effects map[string][]string, disturbed []string, random *rand.Rand) (all []plan, spares map[plan]plan) {
	spares = map[plan]plan{}
	kinds := map[string][]plan{} // by the kind, and of calls to etcd by the mode too
	for _, life := range slices.Sorted(maps.Keys(effects)) {
		for _, effect := range effects[life] {
			for _, m := range deaths(effect) {
				p := plan{life, effect, m}
				if inEtcd(effect) && slices.Contains(disturbed, life) {
					all = append(all, p)
				} else if strings.HasSuffix(effect, "#1") { // a later one may not come in another run
					kinds[p.kind()] = append(kinds[p.kind()], p)
				}
			}
		}
	}
	for _, p := range all {
		delete(kinds, p.kind())
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		plans := kinds[kind]
		random.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
		all = append(all, plans[0])
		if len(plans) > 1 {
			spares[plans[0]] = plans[1]
		}
	}
	return all, spares
}

// kind of plan, of which every run has one.
func (p plan) kind() string {
	kind := kindOfEffect(p.effect)
	if inEtcd(p.effect) {
		kind += " " + string(p.mode)
	}
	return kind
}

// kindOfEffect is its verb, and the kind of the object where there is one: apply.Pod, Promote; of
// agents the container.
func kindOfEffect(effect string) string {
	effect, _, _ = strings.Cut(effect, "#")
	parts := strings.SplitN(effect, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func inEtcd(effect string) bool {
	return slices.Contains(etcdVerbs, verbOf(effect))
}

// TestCrash kills the operator at effects of a cluster's life, and starts another: before the
// effect, after it, or, without a death, while the effect is there and its reply is lost, or the
// request is refused. Or an agent dies, before it has done anything or when it has done all. Each
// time the end is that of an undisturbed run: the same cluster, with what was written to it. First
// come the plans that every run includes, then others by chance, until the time is over. Of the
// first there are two in one life where that has room for them (pairs). For each kind of effect one
// of the first must have been met. TestChaos runs all there are, each by itself.
func TestCrash(t *testing.T) {
	if inChaos() {
		t.Skip("TestChaos runs these and more")
	}
	t.Parallel()
	seed := share.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	effects, ends := undisturbed(t, slices.Sorted(maps.Keys(lives))...)
	figures := newTally(t)
	required := map[string]bool{} // whether a plan of that name met its effect
	var mu sync.Mutex
	disturbed := share.List(t, etcdDisturbed, 4, func(life string) string { return life })
	plans, spares := requiredPlans(effects, disturbed, random)
	for _, ps := range pairs(effects, plans) {
		for _, name := range ps.names() {
			required[name] = false
		}
		figures.together(t, ps, func(t *testing.T) []ending {
			endings := ps.runEach(t, ends[ps[0].life], effects[ps[0].life])
			met := func(p plan, ok bool) {
				mu.Lock()
				defer mu.Unlock()
				required[p.String()] = ok
			}
			for n, p := range ps {
				met(p, endings[n].met)
				if spare, ok := spares[p]; ok && !endings[n].met && !t.Failed() {
					t.Run(spare.String(), func(t *testing.T) { met(spare, spare.run(t, ends[spare.life]).met) })
				}
			}
			return endings
		})
	}
	t.Cleanup(func() {
		met := map[string]bool{}
		for name, ok := range required {
			kind := kindOfEffect(strings.Split(name, "/")[1])
			met[kind] = met[kind] || ok
		}
		for kind, ok := range met {
			if !ok {
				t.Errorf("no plan of those that every run includes came to a %s to disturb", kind)
			}
		}
	})
	others := slices.DeleteFunc(disturbances(effects, ends), func(p trial) bool { _, is := required[p.name]; return is })
	random.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	figures.until(t, crashesFor, 3, others)
}

package membership

// Databases and what they may become.

const mib = 1 << 20

// noSpace is what is told where neither sizes nor quotas are known.
const noSpace = "etcd has raised the alarm NOSPACE, and refuses writes: the database has reached its quota. Raise spec.options.quotaBackendSize, or make it smaller: " +
	"compact (read the revision: kubectl exec m-0 -c etcd -- etcdctl endpoint status -w json; then kubectl exec m-0 -c etcd -- etcdctl compact REVISION), " +
	"then defragment one member after the other (kubectl exec m-1 -c etcd -- etcdctl defrag --command-timeout=5m; kubectl exec m-2 -c etcd -- etcdctl defrag --command-timeout=5m; kubectl exec m-0 -c etcd -- etcdctl defrag --command-timeout=5m). " +
	"Quorate takes the alarm back when every member has room"

// sized is a member with a database of that size, so much of it in use, which may have so much.
func sized(size, inUse, quota int64) func(*Instance) {
	return func(i *Instance) { i.Endpoint.DBSize, i.Endpoint.InUse, i.Pod.Quota = size*mib, inUse*mib, quota*mib }
}

// widened is a member whose Pod is to be recreated with that quota.
func widened(quota int64) func(*Instance) {
	return func(i *Instance) {
		differs(ChangePod, "options")(i)
		i.Pod.QuotaToBe = quota * mib
	}
}

func requests(bytes int64) change { return func(d *Desired, _ *Observed) { d.Request = bytes } }
func withCapacity(mebibytes int64) func(*Instance) {
	return func(i *Instance) { i.Volume.Capacity = mebibytes * mib }
}

// roomyAt are three members that serve.
func roomyAt(size, inUse, quota int64) func() (Desired, Observed) {
	return func() (Desired, Observed) {
		d, o := refusing(size, inUse, quota)()
		onAll(func(i *Instance) { i.Endpoint.Alarms = nil })(&d, &o)
		return d, o
	}
}

// refusing are three members that refuse writes, as all of them say: m-0, which leads, and m-1 have
// raised the alarm.
func refusing(size, inUse, quota int64) func() (Desired, Observed) {
	return func() (Desired, Observed) {
		d, o := formed3()
		d.Namespace = "prod"
		for _, change := range []change{onAll(sized(size, inUse, quota)), onAll(withCapacity(4 * quota)), onAll(func(i *Instance) {
			i.Endpoint.Alarms = []Alarm{{AlarmNoSpace, 0xa0}, {AlarmNoSpace, 0xa1}}
		})} {
			change(&d, &o)
		}
		return d, o
	}
}

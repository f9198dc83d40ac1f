package membership

import (
	"errors"
	"slices"
)

// promisesSpace are those about a database that is full, counted again.
func promisesSpace(d Desired, o Observed, s Step) error {
	raised, others, room := false, false, true
	for _, i := range o.Instances {
		for _, a := range i.Endpoint.Alarms {
			raised = true
			others = others || a.Kind != AlarmNoSpace
		}
		if listing(o, i.ID) != nil && (i.Endpoint.DBSize == 0 || i.Endpoint.Leader == 0 || i.Endpoint.DBSize > i.Pod.Quota-i.Pod.Quota/10 || i.Endpoint.DBSize > i.Pod.Quota-2*d.Request) {
			room = false
		}
	}
	switch {
	case s.Action == None && s.Reason == Healthy && raised:
		return errors.New("an alarm is raised, and it says that all is well")
	case s.Action == Disarm && s.Alarm != AlarmNoSpace && s.Alarm != AlarmCorrupt:
		return errors.New("it does not say which alarm")
	case s.Action == Disarm && s.Alarm == AlarmNoSpace && (!raised || others || !room):
		return errors.New("writes are let in while a member has no room, or is not known to have any, or another alarm is raised")
	case s.Action == Update && others:
		return errors.New("a member is changed while an alarm is raised that says more than that the database is full")
	case s.Action == Update && raised && slices.ContainsFunc(o.Instances, func(i Instance) bool {
		return slices.Contains(s.Members, i.Name) && i.Pod.QuotaToBe <= i.Pod.Quota
	}):
		return errors.New("a member is changed while the database is full, and has no more room for it")
	case s.Action == Update && slices.ContainsFunc(o.Instances, func(i Instance) bool {
		return slices.Contains(s.Members, i.Name) && i.Pod.QuotaToBe > 0 && i.Pod.QuotaToBe < i.Pod.Quota && i.Endpoint.DBSize > i.Pod.QuotaToBe-i.Pod.QuotaToBe/10
	}):
		return errors.New("a member gets a quota that its database has reached")
	default:
		return nil
	}
}

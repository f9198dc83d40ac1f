package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Retention says which snapshots stay. A verified one stays where one of the numbers counts it, or
// where all of them are 0, and where it is not older than MaxAge. All of it zero keeps everything.
type Retention struct {
	// Last is the number of the newest that stay.
	Last int
	// Daily, Weekly and Monthly are numbers of days, weeks (from Monday) and months of which the
	// newest stays. Those in which none was taken do not count.
	Daily, Weekly, Monthly int
	// MaxAge is the age after which none stays. Zero is no bound.
	MaxAge time.Duration
	// Location is the time zone of days, weeks and months. Default: UTC.
	Location *time.Location
}

// Retain divides snapshots, each cluster ID by itself, in the order of List. Only those that were
// verified are counted. The newest verified one always stays, and so do all that are newer than it:
// one of them may be the next. A damaged one stays until it is deleted by its name.
func Retain(stored []Stored, r Retention, now time.Time) (keep, drop []Stored) {
	stored = slices.Clone(stored)
	newestFirst(stored)
	rules := map[string]*counted{} // by cluster ID
	for _, s := range stored {
		if s.Damaged != nil {
			keep = append(keep, s)
			continue
		}
		c := rules[s.Manifest.ClusterID]
		if c == nil {
			c = r.count(now)
			rules[s.Manifest.ClusterID] = c
		}
		if c.stays(s) {
			keep = append(keep, s)
		} else {
			drop = append(drop, s)
		}
	}
	return keep, drop
}

// counted is a Retention as it is used up, from the newest snapshot of a cluster to the oldest.
type counted struct {
	Retention
	now      time.Time
	verified bool     // there was one
	last     int      // how many there were
	periods  []period // of the calendar
}

// period counts the days, or weeks, or months in which a snapshot was taken.
type period struct {
	of   func(time.Time) string
	left int
	last string
}

func (r Retention) count(now time.Time) *counted {
	return &counted{Retention: r, now: now, periods: []period{
		{of: func(t time.Time) string { return t.Format(time.DateOnly) }, left: r.Daily},
		{of: func(t time.Time) string { year, week := t.ISOWeek(); return fmt.Sprint(year, week) }, left: r.Weekly},
		{of: func(t time.Time) string { return t.Format("2006-01") }, left: r.Monthly},
	}}
}

func (c *counted) stays(s Stored) bool {
	young := c.MaxAge <= 0 || c.now.Sub(s.Manifest.TakenAt) <= c.MaxAge
	all := c.Last <= 0 && c.Daily <= 0 && c.Weekly <= 0 && c.Monthly <= 0
	if s.Verification == nil {
		return !c.verified || all && young
	}
	newest, taken := !c.verified, c.takes(s)
	c.verified = true
	return newest || (all || taken) && young
}

// takes tells whether one of the numbers counts a snapshot, and counts it.
func (c *counted) takes(s Stored) bool {
	c.last++
	taken := c.last <= c.Last
	at := s.Manifest.TakenAt.In(cmp.Or(c.Location, time.UTC))
	for n := range c.periods {
		p := &c.periods[n]
		if is := p.of(at); p.left > 0 && is != p.last {
			p.last = is
			p.left--
			taken = true
		}
	}
	return taken
}

// PruneOptions says what is pruned.
type PruneOptions struct {
	// ClusterID is the only one whose snapshots are touched.
	ClusterID string
	// DryRun deletes nothing.
	DryRun bool
	// Now is the time from which ages are counted. Default: the time.
	Now time.Time
}

// Prune deletes the snapshots of a cluster that its retention drops, the oldest first, and returns
// them. It goes on where one cannot be deleted, and returns an error of each.
func Prune(ctx context.Context, store Store, r Retention, o PruneOptions) ([]Stored, error) {
	if o.ClusterID == "" {
		return nil, errors.New("prune: give the ID of the cluster whose snapshots are pruned")
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	stored, err := List(ctx, store)
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(stored, func(s Stored) bool { return s.Manifest.ClusterID != o.ClusterID })
	_, drop := Retain(own, r, o.Now)
	slices.Reverse(drop)
	if o.DryRun {
		return drop, nil
	}
	var dropped []Stored
	var errs []error
	for _, s := range drop {
		if err := Delete(ctx, store, s.Manifest.Name); err != nil {
			errs = append(errs, err)
			continue
		}
		dropped = append(dropped, s)
	}
	return dropped, errors.Join(errs...)
}

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// inotifyFile bounds the inotify instances of each user of this machine. A kind node takes some
// forty of them for root, and with the 128 that many machines have the third or fourth fails with
// "too many open files"
// (https://kind.sigs.k8s.io/docs/user/known-issues/#pod-errors-due-to-too-many-open-files, which
// recommends inotifyWanted).
const (
	inotifyFile   = "/proc/sys/fs/inotify/max_user_instances"
	inotifyWanted = 512
)

// allowInotify raises the bound where it is too low and that is possible, and says so; else it says
// what to do.
func (h *host) allowInotify(ctx context.Context) error {
	now, err := h.inotify()
	if err != nil || now == 0 || now >= inotifyWanted {
		return err
	}
	if h.user == 0 {
		if err := h.remember(ctx, hostRecord{Kind: recordInotify, Was: strconv.Itoa(now)}); err != nil {
			return err
		}
	}
	if err := os.WriteFile(h.path(inotifyFile), []byte(strconv.Itoa(inotifyWanted)), 0o600); err != nil {
		say("this machine allows only %d inotify instances, which the third node exceeds: sysctl fs.inotify.max_user_instances=%d as root", now, inotifyWanted)
		return nil //nolint:nilerr // one node or two work all the same
	}
	say("this machine allowed only %d inotify instances, which the third node exceeds: now %d, until it restarts or make host-clean", now, inotifyWanted)
	return nil
}

// inotify is the bound on inotify instances; 0 where there is none.
func (h *host) inotify() (int, error) {
	raw, err := os.ReadFile(h.path(inotifyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // no Linux, or Docker runs elsewhere
	}
	if err != nil {
		return 0, fmt.Errorf("read the limit of inotify instances: %w", err)
	}
	now, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0, fmt.Errorf("read the limit of inotify instances: %w", err)
	}
	return now, nil
}

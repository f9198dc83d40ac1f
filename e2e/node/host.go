package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// host is this machine, as far as it is changed outside of the cache, of Docker's images and of the
// clusters. Each change is written down before it is made (hostRecord), and CleanHost undoes it.
type host struct {
	root   string // of its files; not "/" in tests
	user   int
	run    func(ctx context.Context, name string, args ...string) ([]byte, error)
	find   func(program string) error
	signal func(pid int, sig syscall.Signal) error
	cache  string
}

func thisHost() (*host, error) {
	cache, err := cacheRoot()
	if err != nil {
		return nil, err
	}
	return &host{
		root: "/", user: os.Geteuid(), cache: cache, signal: syscall.Kill,
		run: func(ctx context.Context, name string, args ...string) ([]byte, error) {
			cmd := command(ctx, name, args...)
			cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive") // of apt-get
			return output(cmd)
		},
		find: func(program string) error { _, err := exec.LookPath(program); return err },
	}, nil
}

func (h *host) path(file string) string { return filepath.Join(h.root, file) }

// HostNeed is what a command needs of the machine.
type HostNeed int

const (
	// NeedImage is a node image, which may have to be built.
	NeedImage HostNeed = iota
	// NeedCluster is a node image and a cluster.
	NeedCluster
)

// hostChange is what may be changed of the machine.
type hostChange struct{ what, why, undo string }

// AskHost says what a command is going to change of the machine, if anything, why, and how it is
// undone. At a terminal it asks, and returns an error where the answer is no; without one, or with
// CI=true, it does not.
func AskHost(ctx context.Context, need HostNeed) error {
	h, err := thisHost()
	if err != nil {
		return err
	}
	asks := term.IsTerminal(int(os.Stdin.Fd())) && os.Getenv("CI") != "true"
	return ask(h.pending(ctx, need), asks, os.Stdin, os.Stderr)
}

func ask(changes []hostChange, asks bool, in io.Reader, out io.Writer) error {
	if len(changes) == 0 {
		return nil
	}
	var text strings.Builder
	text.WriteString("This changes the machine itself, outside of the cache, Docker's images and the clusters:\n")
	for _, c := range changes {
		fmt.Fprintf(&text, "\n  %s\n    why:  %s\n    undo: %s\n", c.what, c.why, c.undo)
	}
	text.WriteString("\nmake host-clean undoes what was changed.\n")
	if asks {
		text.WriteString("Go on? [y/N] ")
	}
	if _, err := io.WriteString(out, text.String()); err != nil || !asks {
		return err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	default:
		return errors.New("nothing was changed. make test-fast needs nothing of this")
	}
}

// pending are the changes that the machine as it is may need. Whether a registry answers, and
// whether privileged containers run, shows only when it is tried.
func (h *host) pending(ctx context.Context, need HostNeed) []hostChange {
	if h.user != 0 {
		return nil // nothing of this can be changed then
	}
	var changes []hostChange
	if h.lacksDebootstrap() && !h.hasImage(ctx) {
		changes = append(changes, hostChange{
			what: "packages " + strings.Join(debootstrapPackages, ", ") + " are installed, if no registry gives the node image",
			why:  "the image is then built of Debian packages, which debootstrap unpacks",
			undo: "dpkg --remove those of them that were not installed before",
		})
	}
	if need == NeedImage {
		return changes
	}
	if now, err := h.inotify(); err == nil && now > 0 && now < inotifyWanted {
		changes = append(changes, hostChange{
			what: fmt.Sprintf("fs.inotify.max_user_instances becomes %d (it is %d), until the machine restarts", inotifyWanted, now),
			why:  "the third node of a cluster would fail",
			undo: fmt.Sprintf("sysctl fs.inotify.max_user_instances=%d", now),
		})
	}
	if h.withholdsSysResource() && !h.hasRuntime() {
		changes = append(changes, hostChange{
			what: "Docker's default runtime becomes " + runcWrapperName + " (" + daemonConfig + ", " + runcWrapperPath + "), if privileged containers fail",
			why:  "they would ask for CAP_SYS_RESOURCE, which this machine withholds",
			undo: "take it from " + daemonConfig + ", and let Docker's daemon read that again (kill -HUP)",
		})
	}
	if missing, err := h.lacksRule(ctx); err == nil && missing {
		changes = append(changes, hostChange{
			what: "a routing rule leads what this machine itself sends to routes in table " + hostTable,
			why:  "programs on this machine reach the Pods and Services of the cluster",
			undo: "ip -4 rule del " + strings.Join(hostRule, " "),
		})
	}
	return changes
}

func (h *host) hasImage(ctx context.Context) bool {
	for _, ref := range []string{newest.publishedImage(), newest.builtImage()} {
		if _, err := h.run(ctx, "docker", "image", "inspect", "--format", "{{.Id}}", ref); err == nil {
			return true
		}
	}
	return exists(filepath.Join(h.cache, debianName()))
}

// withholdsSysResource reports whether no process of this machine may have CAP_SYS_RESOURCE.
func (h *host) withholdsSysResource() bool {
	const sysResource = 24
	status, err := os.ReadFile(h.path("/proc/self/status"))
	if err != nil {
		return false // no Linux
	}
	for line := range strings.Lines(string(status)) {
		if bounds, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(bounds), 16, 64)
			return err == nil && set&(1<<sysResource) == 0
		}
	}
	return false
}

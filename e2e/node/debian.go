package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// debianPackages is what kind's node expects beside a minimal Debian, and a static busybox for the
// helper Pod of the storage provisioner.
var debianPackages = []string{
	"systemd", "systemd-sysv", "dbus", "kmod", "procps", "util-linux", "mount", "libseccomp2", "runc",
	"conntrack", "iptables", "nftables", "iproute2", "ethtool", "socat", "e2fsprogs",
	"bash", "ca-certificates", "curl", "jq", "busybox-static",
}

// Nothing on a node reads these, and every node gets its own copy of the image.
var debianUnwanted = []string{
	"var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/doc", "usr/share/man",
	"usr/share/info", "usr/share/locale", "usr/share/zoneinfo", "usr/share/i18n",
}

const defaultMirror = "http://deb.debian.org/debian"

// debianKeyring has the keys of the Debian archive.
const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// debootstrapFlags: the archive's signature is checked, or nothing is built. Without the flag, and
// without a keyring, debootstrap warns, and unpacks as root what the mirror gives.
var debootstrapFlags = []string{"--variant=minbase", "--force-check-gpg"}

// debianRoot returns a directory with root.tar, the file system that nodes and the images of
// Debian programs are made from.
func debianRoot(ctx context.Context) (string, error) {
	return cached(ctx, debianName(), func(dir string) error {
		machine, err := thisHost()
		if err != nil {
			return err
		}
		if err := machine.ensureDebootstrap(ctx); err != nil {
			return err
		}
		mirror := debianMirror(ctx)
		say("making a Debian %s root from %s", debianSuite, mirror)
		root := filepath.Join(dir, "root")
		cmd := command(ctx, "debootstrap", append(slices.Clone(debootstrapFlags),
			"--include="+strings.Join(debianPackages, ","), debianSuite, root, mirror)...)
		cmd.Env = append(os.Environ(), aptProxy(ctx)...)
		if _, err := output(cmd); err != nil {
			return fmt.Errorf("make a Debian root: %w", err)
		}
		for _, path := range debianUnwanted {
			if err := empty(filepath.Join(root, path)); err != nil {
				return fmt.Errorf("shrink the Debian root: %w", err)
			}
		}
		if _, err := output(command(ctx, "tar", "--numeric-owner", "-C", root, "-cf", filepath.Join(dir, "root.tar"), ".")); err != nil {
			return fmt.Errorf("pack the Debian root: %w", err)
		}
		if err := os.RemoveAll(root); err != nil {
			return fmt.Errorf("remove the unpacked Debian root: %w", err)
		}
		say("made the Debian root")
		return nil
	})
}

// debianName is that of the directory in the cache.
func debianName() string {
	return fmt.Sprintf("debian-%s-%s-%s", debianSuite, runtime.GOARCH, fingerprint([]any{debianPackages, debianUnwanted, debootstrapFlags}))
}

// debootstrapPackages have debootstrap, and that and the keys by which it checks what it gets.
var debootstrapPackages = []string{"debootstrap", "gpgv", "debian-archive-keyring"}

func (h *host) lacksDebootstrap() bool {
	_, keyring := os.Stat(h.path(debianKeyring))
	return errors.Join(h.find("debootstrap"), h.find("gpgv"), keyring) != nil
}

// ensureDebootstrap installs debootstrapPackages when they are missing and this process may do so.
func (h *host) ensureDebootstrap(ctx context.Context) error {
	if h.user != 0 {
		return errors.New("building the node image unpacks Debian packages as root: " +
			"run this as root, or give Docker access to a registry")
	}
	if !h.lacksDebootstrap() {
		return nil
	}
	if err := h.find("apt-get"); err != nil {
		return errors.New("building the node image needs debootstrap, gpgv and " + debianKeyring + ": install them with this system's package manager")
	}
	say("installing debootstrap, which unpacks Debian packages, and the keys of the Debian archive, until make host-clean")
	install := append([]string{"install", "--yes", "--no-install-recommends"}, debootstrapPackages...)
	planned, err := h.run(ctx, "apt-get", append([]string{"--simulate"}, install...)...)
	if err != nil { // a fresh machine has no package lists yet
		if _, err := h.run(ctx, "apt-get", "update"); err != nil {
			return fmt.Errorf("read the package lists: %w", err)
		}
		if planned, err = h.run(ctx, "apt-get", append([]string{"--simulate"}, install...)...); err != nil {
			return fmt.Errorf("install debootstrap: %w", err)
		}
	}
	if packages := newPackages(string(planned)); len(packages) > 0 {
		if err := h.remember(ctx, hostRecord{Kind: recordPackages, Packages: packages}); err != nil {
			return err
		}
	}
	if _, err := h.run(ctx, "apt-get", install...); err == nil {
		return nil
	}
	if _, err := h.run(ctx, "apt-get", "update"); err != nil { // the lists may be too old
		return fmt.Errorf("read the package lists: %w", err)
	}
	if _, err := h.run(ctx, "apt-get", install...); err != nil {
		return fmt.Errorf("install debootstrap: %w", err)
	}
	return nil
}

// newPackages are those that apt-get is going to install, and that no version is installed of.
func newPackages(simulated string) []string {
	var packages []string
	for line := range strings.Lines(simulated) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "Inst" && !strings.HasPrefix(words[2], "[") {
			packages = append(packages, words[1])
		}
	}
	return packages
}

// debianMirror is the Debian archive that this machine's apt uses, or the public one.
func debianMirror(ctx context.Context) string {
	out, err := output(command(ctx, "apt-get", "indextargets",
		"--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"))
	if err != nil {
		return defaultMirror // apt is missing or not in use: not an error
	}
	return firstMirror(string(out))
}

// aptProxy is the proxy that apt reaches its mirror through, for a debootstrap that does not ask
// apt.
func aptProxy(ctx context.Context) []string {
	out, err := output(command(ctx, "apt-config", "dump", "--format", "%v", "Acquire::http::Proxy"))
	if proxy := strings.TrimSpace(string(out)); err == nil && proxy != "" {
		return []string{"http_proxy=" + proxy}
	}
	return nil
}

// firstMirror picks the first main archive of Debian from lines of origin, label and address.
func firstMirror(targets string) string {
	for line := range strings.Lines(targets) {
		uri, ok := strings.CutPrefix(strings.TrimSpace(line), "Debian|Debian|")
		if ok && strings.HasPrefix(uri, "http") {
			return strings.TrimSuffix(uri, "/")
		}
	}
	return defaultMirror
}

// empty removes everything below dir but dir itself.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

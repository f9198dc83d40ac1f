package hostlet

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quorate.dev/e2e/node"
)

// mount says which directory of this machine a container sees at path.
type mount struct{ path, dir string }

// command to run the Pod's container: the binary of its image with paths and
// names of this machine.
func (h *Hostlet) command(ctx context.Context, w *worker, c *corev1.Container, imageDir string) (*exec.Cmd, error) {
	pod := w.pod
	if err := supported(pod); err != nil {
		return nil, err
	}
	env, err := environment(pod, c, w.addr.String())
	if err != nil {
		return nil, err
	}
	mounts, err := h.mounts(ctx, pod, c, env)
	if err != nil {
		return nil, err
	}
	local := func(s string) string {
		replaced, e := h.names.substitute(inMounts(s, mounts), w.addr)
		if e != nil {
			err = e
		}
		return replaced
	}
	argv := commandLine(c, env)
	cmd := &exec.Cmd{Path: filepath.Join(imageDir, filepath.Base(argv[0])), Dir: h.podDir(pod.UID)}
	if program := h.program(c.Image); program != "" {
		cmd.Path = program
		argv = slices.Concat([]string{program}, argv, []string{"--result=" + h.resultFile(pod, c.Name)})
	} else if installed := inMounts(argv[0], mounts); installed != argv[0] { // a program that another container has put there
		cmd.Path = installed
		mounts = append(mounts, mount{path: imagePrograms, dir: imageDir})
		argv = append(slices.Clone(argv), "--result="+h.resultFile(pod, c.Name))
	}
	for _, arg := range argv {
		cmd.Args = append(cmd.Args, local(arg))
	}
	if filepath.Base(cmd.Path) == "etcd" {
		// Processes are killed here, and no machine loses its power: what was written is there.
		cmd.Args = append(cmd.Args, "--unsafe-no-fsync")
		cmd.Args = append(cmd.Args, seldom(h.opts.Heartbeat, argv)...)
	}
	cmd.Stdout, cmd.Stderr = w.log, w.log
	// Dozens of processes share a few processors, and each has little to do at a time: more threads
	// only cost more. Without any variable it would have the test's own environment. Memory is
	// cheaper than processors, as for the API server.
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=400"}
	for _, e := range env {
		cmd.Env = append(cmd.Env, e.Name+"="+local(e.Value))
	}
	if err != nil {
		return nil, err
	}
	return cmd, os.MkdirAll(cmd.Dir, 0o700)
}

// imagePrograms is where the programs of an etcd image are.
const imagePrograms = "/usr/local/bin"

// seldom are the flags of an etcd that has a heartbeat each so long, unless its command line
// decides.
func seldom(heartbeat time.Duration, argv []string) []string {
	decides := func(arg string) bool {
		return strings.HasPrefix(arg, "--heartbeat-interval") || strings.HasPrefix(arg, "--election-timeout")
	}
	if heartbeat == 0 || slices.ContainsFunc(argv, decides) {
		return nil
	}
	return []string{fmt.Sprintf("--heartbeat-interval=%d", heartbeat.Milliseconds())}
}

// supported reports what a Pod asks for that would silently not be done.
func supported(pod *corev1.Pod) error {
	c := mainContainer(pod)
	for _, p := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if p != nil && p.HTTPGet == nil && p.TCPSocket == nil {
			return fmt.Errorf("container %s: only httpGet and tcpSocket probes are supported", c.Name)
		}
	}
	return nil
}

// environment resolves the container's variables in order, as kubelet does at
// every start of the container: a changed annotation shows after a restart.
func environment(pod *corev1.Pod, c *corev1.Container, podIP string) ([]corev1.EnvVar, error) {
	if len(c.EnvFrom) > 0 {
		return nil, fmt.Errorf("container %s: envFrom is not supported", c.Name)
	}
	env := make([]corev1.EnvVar, 0, len(c.Env))
	for _, e := range c.Env {
		value := expand(e.Value, env)
		if e.ValueFrom != nil {
			if e.ValueFrom.FieldRef == nil {
				return nil, fmt.Errorf("variable %s: only fieldRef is supported in valueFrom", e.Name)
			}
			var err error
			if value, err = field(pod, e.ValueFrom.FieldRef.FieldPath, podIP); err != nil {
				return nil, fmt.Errorf("variable %s: %w", e.Name, err)
			}
		}
		env = append(env, corev1.EnvVar{Name: e.Name, Value: value})
	}
	return env, nil
}

var keyedField = regexp.MustCompile(`^metadata\.(annotations|labels)\['(.+)'\]$`)

// field is the downward API: an absent annotation or label is an empty string.
func field(pod *corev1.Pod, path, podIP string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "status.podIP":
		return podIP, nil
	}
	key := keyedField.FindStringSubmatch(path)
	if key == nil {
		return "", fmt.Errorf("field %s is not supported", path)
	}
	if key[1] == "labels" {
		return pod.Labels[key[2]], nil
	}
	return pod.Annotations[key[2]], nil
}

var reference = regexp.MustCompile(`\$\$|\$\([^()$]*\)`)

// expand replaces $(NAME) by the variable's value. An unknown name stays as it
// is written, and $$ is a literal $, so that $$(NAME) means $(NAME).
func expand(s string, env []corev1.EnvVar) string {
	return reference.ReplaceAllStringFunc(s, func(ref string) string {
		if ref == "$$" {
			return "$"
		}
		// The last definition of a name wins.
		for _, e := range slices.Backward(env) {
			if "$("+e.Name+")" == ref {
				return e.Value
			}
		}
		return ref
	})
}

// commandLine is what the container executes, with its variables resolved but
// its paths and host names still those of a Pod. Without a command it is what
// the etcd image starts by default.
func commandLine(c *corev1.Container, env []corev1.EnvVar) []string {
	words := slices.Concat(c.Command, c.Args)
	if len(words) == 0 {
		return []string{"/usr/local/bin/etcd"}
	}
	argv := make([]string, 0, len(words))
	for _, w := range words {
		argv = append(argv, expand(w, env))
	}
	return argv
}

// inMounts replaces paths below mount points by those of this machine.
func inMounts(s string, mounts []mount) string {
	// The longest first: a mount point may lie within another.
	mounts = slices.Clone(mounts)
	slices.SortFunc(mounts, func(a, b mount) int { return len(b.path) - len(a.path) })
	for _, m := range mounts {
		path := regexp.MustCompile(`(^|[=,:"])` + regexp.QuoteMeta(filepath.Clean(m.path)) + `(/|,|"|$)`)
		s = path.ReplaceAllStringFunc(s, func(match string) string {
			return strings.Replace(match, filepath.Clean(m.path), m.dir, 1)
		})
	}
	return s
}

// pull the image: find the directory with its binaries.
func (h *Hostlet) pull(ctx context.Context, image string) (string, error) {
	if h.program(image) != "" {
		return "", nil
	}
	version, err := imageVersion(image)
	if err != nil {
		return "", err
	}
	dir, err := h.opts.EtcdDir(ctx, version)
	if err != nil {
		return "", fmt.Errorf("pull %s: %w", image, err)
	}
	return dir, nil
}

var versionTag = regexp.MustCompile(`:v?(\d+\.\d+\.\d+)$`)

// imageVersion reads the etcd version off an image's tag or, where there is none, its digest.
func imageVersion(image string) (string, error) {
	name, digest, _ := strings.Cut(image, "@")
	if tag := versionTag.FindStringSubmatch(name); tag != nil {
		return tag[1], nil
	}
	for _, version := range node.EtcdVersions() {
		if digest == Digest(version) {
			return version, nil
		}
	}
	return "", fmt.Errorf("image %q has no tag that names an etcd version, and no digest of one", image)
}

// Digest is that of the image of a released etcd version, in every registry.
func Digest(version string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(version)))
}

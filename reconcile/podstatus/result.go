package podstatus

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// OOMKilled is the reason that kubelets give when the kernel ends a container for want of memory.
const OOMKilled = "OOMKilled"

// Result is what an agent has left as the termination message of its container.
type Result struct {
	// Manifest is of the snapshot that the agent has worked on; nil where it names none.
	Manifest *Manifest `json:"manifest"`
	// Verification is that of the snapshot; nil where the agent knows of none.
	Verification *Verification `json:"verification"`
	// Failure is why the container has failed; nil where it has not.
	Failure *Failure `json:"error"`
}

// Manifest is what the operator takes of the manifest of a snapshot.
type Manifest struct {
	Name        string    `json:"name"`
	ClusterID   string    `json:"clusterID"`
	Member      string    `json:"member"`
	EtcdVersion string    `json:"etcdVersion"`
	Revision    int64     `json:"revision"`
	Object      string    `json:"object"`
	Size        int64     `json:"size"` // bytes of the data
	SHA256      string    `json:"sha256"`
	StoredSize  int64     `json:"storedSize"` // bytes of what is stored
	Encrypted   bool      `json:"encrypted"`
	StartedAt   time.Time `json:"startedAt"`
	TakenAt     time.Time `json:"takenAt"`
}

// fits reports whether a status has room for the manifest, which is from the store, and may be
// anybody's. With a longer one none would be written, and nothing of it seen.
func (m *Manifest) fits() bool {
	return len(m.Name) <= 253 && len(m.ClusterID) <= 16 && len(m.Member) <= 63 && len(m.EtcdVersion) <= 32 && len(m.SHA256) <= 64 && len(m.Object) <= 1024
}

// Verification is what the operator takes of the record of a verification.
type Verification struct {
	At time.Time `json:"at"`
}

// Failure is why something has failed.
type Failure struct {
	// Reason is a word that a condition may have.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// ResultOf a container that has ended. A container that was killed has left nothing: then the
// kubelet's word for it, or the last line of its log, is the failure.
func ResultOf(container string, exit *corev1.ContainerStateTerminated) Result {
	left := Result{}
	if json.Unmarshal([]byte(exit.Message), &left) != nil {
		left = Result{}
	}
	if left.Manifest != nil && !left.Manifest.fits() {
		left.Manifest = nil
	}
	switch {
	case exit.ExitCode == 0:
		left.Failure = nil
		return left
	case left.Failure != nil && left.Failure.Message != "":
		return failed(left.Failure.Reason, left.Failure.Message)
	case exit.Reason == OOMKilled:
		return failed(OOMKilled, fmt.Sprintf("container %s was killed for using more memory than it may (%s)", container, OOMKilled))
	default:
		text := strings.TrimSpace(exit.Message)
		last := text[strings.LastIndex(text, "\n")+1:]
		return failed(api.ReasonAgentFailed, Clause(fmt.Sprintf("container %s exited with code %d", container, exit.ExitCode), last))
	}
}

func failed(reason, message string) Result {
	return Result{Failure: &Failure{Reason: Reason(reason), Message: FirstLine(message)}}
}

var reasonForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// Reason is that word, or api.ReasonAgentFailed where a condition could not have it.
func Reason(word string) string {
	if reasonForm.MatchString(word) {
		return word
	}
	return api.ReasonAgentFailed
}

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// request is one request of an operator, as the API server's audit log tells it.
type request struct {
	Verb      string
	User      struct{ Username string }
	UserAgent string
	ObjectRef struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	Received  time.Time          `json:"requestReceivedTimestamp"`
	Response  struct{ Code int } `json:"responseStatus"`
	// Annotations tell what authorization said: a quota answers 403 as well.
	Annotations map[string]string
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %s in namespace %q by %s", r.Verb, r.right().resource(), r.ObjectRef.Name, r.ObjectRef.Namespace, r.User.Username)
}

func (r request) mutates() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

func (r request) created() bool { return r.Response.Code == http.StatusCreated }

func (r request) right() right {
	name := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		name += "/" + r.ObjectRef.Subresource
	}
	return right{group: r.ObjectRef.APIGroup, name: name, verb: r.Verb}
}

// requests of operators that the API server has got since then.
func requests(ctx context.Context, since time.Time) ([]request, error) {
	log, err := onNode(ctx, "cat", auditFile)
	if err != nil {
		return nil, err
	}
	var all []request
	for line := range strings.Lines(log) {
		var r request
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if !r.Received.Before(since) {
			all = append(all, r)
		}
	}
	return all, nil
}

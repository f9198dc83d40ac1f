//go:build e2e

package e2e

// kubectl is the command line of a kubectl that runs on the node, in a namespace.
func kubectl(namespace string, args ...string) []string {
	return append([]string{"kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "--namespace=" + namespace}, args...)
}

// kubectl runs it in the namespace of the story, and returns what it prints.
func (s *stage) kubectl(args ...string) string {
	s.Helper()
	out, err := onNode(s.Context(), kubectl(s.ns, args...)...)
	if err != nil {
		s.Fatal(err)
	}
	return out
}

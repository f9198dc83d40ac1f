//go:build env

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/e2e/node"
)

// TestSnapshotWithTLS saves from an etcd that wants certificates and users, with the flags and
// variables of etcdctl.
func TestSnapshotWithTLS(t *testing.T) {
	t.Parallel()
	h := newHosts(t, node.Etcd37)
	ca, key := filepath.Join(h.dir, "ca.crt"), filepath.Join(h.dir, "client.key")
	writeCertificate(t, ca, key)
	h.start("m1", "etcd --name m1 --data-dir /var/lib/etcd --listen-client-urls https://10.0.0.1:2379 --advertise-client-urls https://localhost:2379 "+
		"--listen-peer-urls http://10.0.0.1:2380 --initial-advertise-peer-urls http://10.0.0.1:2380 --initial-cluster m1=http://10.0.0.1:2380 "+
		"--client-cert-auth --trusted-ca-file ca.crt --cert-file ca.crt --key-file client.key")
	const flags = " --cacert ca.crt --cert ca.crt --key client.key"
	h.serving("https://10.0.0.1:2379" + flags)
	for _, command := range []string{"user add root:open-sesame", "user grant-role root root", "auth enable"} {
		h.run("etcdctl --endpoints https://10.0.0.1:2379" + flags + " " + command)
	}
	cases := []struct {
		reason string
		env    string
		args   string
		want   string
	}{
		{"an etcd with TLS does not answer clients without", "", "--endpoints http://10.0.0.1:2379 --name a", "no member to take a snapshot from"},
		{"the system does not know the authority", "", "--endpoints https://10.0.0.1:2379 --name b", "certificate"},
		{"the user of the certificate has no right", "", "--endpoints https://10.0.0.1:2379 --name c" + flags, "permission denied"},
		{"the password is wrong", "", "--endpoints https://10.0.0.1:2379 --name d --user root:wrong" + flags, "invalid user ID or password"},
		{"flags", "", "--endpoints https://10.0.0.1:2379 --name e --user root:open-sesame" + flags, "Saved snapshot e"},
		{
			"variables", "ETCDCTL_ENDPOINTS=https://10.0.0.1:2379 ETCDCTL_CACERT=ca.crt ETCDCTL_CERT=ca.crt ETCDCTL_KEY=client.key ETCDCTL_USER=root ETCDCTL_PASSWORD=open-sesame ",
			"--name f", "Saved snapshot f",
		},
	}
	for _, tc := range cases {
		out, err := h.try(h.here(tc.env+"quorate snapshot save --store . "+tc.args, ""))
		if saved := strings.HasPrefix(tc.want, "Saved"); saved != (err == nil) || !strings.Contains(out, tc.want) {
			t.Errorf("%s: want %q, got %v\n%s", tc.reason, tc.want, err, out)
		}
	}
	if out, err := h.try("quorate snapshot verify f --store ."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

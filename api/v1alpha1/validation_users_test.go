package v1alpha1

import (
	"strings"
	"testing"
)

// minimalRole and minimalUser are the smallest good EtcdRole and EtcdUser.
const (
	minimalRole = `
apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdRole
metadata: {name: a, namespace: default}
spec: {clusterRef: {name: db}}
`
	minimalUser = `
apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdUser
metadata: {name: a, namespace: default}
spec: {clusterRef: {name: db}}
`
)

func TestAdmitRole(t *testing.T) {
	t.Parallel()
	const (
		one  = `a permission is for one key (key), for the keys with a prefix (prefix; the empty one is all keys), or for a range (from, to): write exactly one of key, prefix and from`
		end  = `to is the end of a range, which is not in it: it goes with from, and must be greater`
		root = `root is etcd's own role, which may do everything: name this one otherwise`
	)
	admissionOf(t, minimalRole, map[string]admissionCase{
		"Minimal": {reason: "it allows nothing", args: args{object: `{}`}},
		"Full": {
			reason: "all that can be said",
			args: args{object: `spec: {name: 'an app: RW', drift: Report, permissions: [{access: Read, key: /a}, {access: Write, prefix: /b/},
				{access: ReadWrite, prefix: ''}, {access: Read, from: a, to: b}, {access: Read, from: x}]}`},
		},
		"Changed": {reason: "what it allows can be changed", args: args{before: `{}`, object: `spec: {drift: Report, permissions: [{access: Read, key: /a}]}`}},
		"Root":    {reason: "everything goes by it", args: args{object: `metadata: {name: root}`}, want: []string{`metadata: Invalid value: ` + root}},
		"RootSpec": {
			reason: "also where the object has another name", args: args{object: `spec: {name: root}`},
			want: []string{`spec.name: Invalid value: ` + root},
		},
		"RootOtherwise": {reason: "the object may have any name", args: args{object: `{metadata: {name: root}, spec: {name: app}}`}},
		"OtherCluster": {
			reason: "the role of the former one would stay", args: args{before: `{}`, object: `spec: {clusterRef: {name: other}}`},
			want: []string{`spec.clusterRef: Invalid value: spec.clusterRef cannot be changed: make another EtcdRole`},
		},
		"OtherName": {
			reason: "the same", args: args{before: `{}`, object: `spec: {name: b}`},
			want: []string{`spec.name: Invalid value: spec.name cannot be changed: make another EtcdRole`},
		},
		"NoKeys":  {reason: "for which keys", args: args{object: `spec: {permissions: [{access: Read}]}`}, want: []string{`spec.permissions[0]: Invalid value: ` + one}},
		"TwoKeys": {reason: "which of the two", args: args{object: `spec: {permissions: [{access: Read, key: a, prefix: b}]}`}, want: []string{`spec.permissions[0]: Invalid value: ` + one}},
		"ToAlone": {
			reason: "from where", args: args{object: `spec: {permissions: [{access: Read, key: a, to: b}]}`},
			want: []string{`spec.permissions[0].to: Invalid value: ` + end},
		},
		"Backwards": {
			reason: "etcd would refuse it", args: args{object: `spec: {permissions: [{access: Read, from: b, to: b}]}`},
			want: []string{`spec.permissions[0].to: Invalid value: ` + end},
		},
	})
}

func TestAdmitUser(t *testing.T) {
	t.Parallel()
	const (
		root     = `root is etcd's own user: its password is spec.auth.rootSecretRef of the EtcdCluster. Name this one otherwise`
		own      = `quorate is Quorate's own user in etcd: name this one otherwise`
		clusters = `this is a Secret of the EtcdCluster itself: write another name in spec.certificate.secretName, for example that of the application`
		password = `etcd cannot give a password to a user that was made without one, nor take it away: delete the EtcdUser, and apply it again. passwordSecretRef may name another Secret at any time`
	)
	admissionOf(t, minimalUser, map[string]admissionCase{
		"Minimal": {reason: "it may do nothing", args: args{object: `{}`}},
		"Full":    {reason: "all that can be said", args: args{object: `spec: {name: 'CN of app@example.com', passwordSecretRef: {name: s}, roles: [reader, root], drift: Report}`}},
		"Changed": {reason: "its roles can be changed", args: args{before: `{}`, object: `spec: {roles: [a, b]}`}},
		"Secret": {
			reason: "the password can be in another Secret",
			args:   args{before: `spec: {passwordSecretRef: {name: s}}`, object: `spec: {passwordSecretRef: {name: t}}`},
		},
		"Root":     {reason: "etcd's own", args: args{object: `metadata: {name: root}`}, want: []string{`metadata: Invalid value: ` + root}},
		"RootSpec": {reason: "the same", args: args{object: `spec: {name: root}`}, want: []string{`spec.name: Invalid value: ` + root}},
		"Own":      {reason: "Quorate's own", args: args{object: `metadata: {name: quorate}`}, want: []string{`metadata: Invalid value: ` + own}},
		"OwnSpec":  {reason: "the same", args: args{object: `spec: {name: quorate}`}, want: []string{`spec.name: Invalid value: ` + own}},
		"Password": {
			reason: "etcd knows no way", args: args{before: `{}`, object: `spec: {passwordSecretRef: {name: s}}`},
			want: []string{`spec.passwordSecretRef: Invalid value: ` + password},
		},
		"NoPassword": {
			reason: "the same the other way", args: args{before: `spec: {passwordSecretRef: {name: s}}`, object: `{}`},
			want: []string{`spec.passwordSecretRef: Invalid value: ` + password},
		},
		"Certificate": {reason: "in a Secret of its own", args: args{object: `spec: {certificate: {secretName: app-client-tls}}`}},
		"ClustersSecret": {
			reason: "the cluster would lose its own", args: args{object: `spec: {certificate: {secretName: db-client-tls}}`},
			want: []string{`spec.certificate.secretName: Invalid value: ` + clusters},
		},
		"ClustersAuthority": {
			reason: "the same", args: args{object: `spec: {certificate: {secretName: db-client-ca}}`},
			want: []string{`spec.certificate.secretName: Invalid value: ` + clusters},
		},
		"LongName": {
			reason: "a common name has 64 characters at most", args: args{object: `spec: {name: ` + strings.Repeat("a", 65) + `}`},
			want: []string{`spec.name: Too long: may not be more than 64 bytes`},
		},
		"Spaces": {
			reason: "nobody would see them", args: args{object: `spec: {name: 'app '}`},
			want: []string{`spec.name: Invalid value: "app ": spec.name must be printable ASCII, without a space at its ends`},
		},
	})
}

func TestAdmitAuth(t *testing.T) {
	t.Parallel()
	const (
		on      = `, status: {observedGeneration: 1, clusterID: c1, nextOrdinal: 3, auth: {enabled: true, user: quorate}, tls: {client: {mode: Managed}, peer: {mode: Managed}}}}`
		off     = `, status: {observedGeneration: 1, clusterID: c1, nextOrdinal: 3, auth: {}, tls: {client: {mode: Managed}, peer: {mode: Managed}}}}`
		plain   = `{spec: {auth: {enabled: false}, tls: {client: {mode: Disabled}}}`
		secured = `{spec: {auth: {enabled: true}}`
		mode    = `spec.tls.client.mode: Invalid value: spec.tls.client.mode cannot be changed while etcd authenticates clients (status.auth.enabled), because Quorate and the clients are the users that their certificates name: set spec.auth.enabled to false first`
	)
	admission(t, map[string]admissionCase{
		"Enabled":  {reason: "TLS is the default", args: args{object: `spec: {auth: {enabled: true, rootSecretRef: {name: root}}}`}},
		"Disabled": {reason: "without TLS there is none", args: args{object: `spec: {auth: {enabled: false}, tls: {client: {mode: Disabled}}}`}},
		"NoTLS": {
			reason: "Quorate is the user that its certificate names", args: args{object: `spec: {auth: {enabled: true}, tls: {client: {mode: Disabled}}}`},
			want: []string{`spec.auth.enabled: Invalid value: spec.auth.enabled needs TLS for clients, because Quorate connects as the user that its certificate names: set spec.tls.client.mode to Managed or Secret, or spec.auth.enabled to false`},
		},
		"ModeWhileOn":  {reason: "Quorate would be locked out", args: args{before: secured + on, object: plain + on}, want: []string{mode}},
		"ModeWhileOff": {reason: "etcd authenticates none any more", args: args{before: secured + off, object: plain + off}},
		"NamedRoot": {
			reason: "its members would be that user", args: args{object: `{metadata: {name: root}, spec: {auth: {enabled: true}}}`},
			want: []string{`spec.auth.enabled: Invalid value: spec.auth.enabled: the certificates of the members have the name of the EtcdCluster, and root and quorate are users that may do everything. Create the EtcdCluster with another name, or leave spec.auth out`},
		},
		"NamedRootOff": {reason: "etcd authenticates none", args: args{object: `{metadata: {name: quorate}, spec: {auth: {enabled: false}}}`}},
		"Off":          {reason: "it can be disabled", args: args{before: secured + on, object: `{spec: {auth: {enabled: false}}` + on}},
		"Removed":      {reason: "which is the same", args: args{before: secured + on, object: `{spec: {}` + on}},
	})
}

package v1alpha1

import "testing"

func TestAdmitTLS(t *testing.T) {
	t.Parallel()
	const (
		removed = `spec.tls.client: Invalid value: spec.tls.client cannot be removed while its mode is Managed or Secret, because that would leave open which mode is meant: set spec.tls.client.mode to Disabled for plain text`
		peer    = `spec.tls.peer: Invalid value: spec.tls.peer.mode cannot be changed yet: revert it. To change it, create another EtcdCluster with the mode that you want, and restore a snapshot of this one into it (spec.bootstrap.restore)`
		both    = `spec.tls.client: Invalid value: spec.tls.client.secretRef and spec.tls.client.operatorSecretRef are for mode Secret, which needs both: the members' certificate, and the client certificate with which Quorate and its backups connect`
		names   = `spec.tls.client.altNames: each is a DNS name in lower case, such as etcd.example.com or *.etcd.example.com, or an IP address, without port and scheme`
		managed = `spec: {tls: {client: {mode: Managed}, peer: {mode: Managed}}}`
		own     = `spec: {tls: {client: {mode: Secret, secretRef: {name: a}, operatorSecretRef: {name: b}}, peer: {mode: Secret, secretRef: {name: c}}}}`
	)
	admission(t, map[string]admissionCase{
		"Managed":      {reason: "Quorate issues all", args: args{object: managed}},
		"Own":          {reason: "others issue all", args: args{object: own}},
		"OnePlane":     {reason: "each plane is by itself", args: args{object: `spec: {tls: {peer: {mode: Managed}}}`}},
		"DisabledSaid": {reason: "what is the default can be said later", args: args{before: `{}`, object: `spec: {tls: {client: {mode: Disabled}}}`}},
		"AltNames": {
			reason: "names, wildcards and addresses of both families",
			args:   args{object: `spec: {tls: {client: {mode: Managed, altNames: [etcd.example.com, '*.etcd.example.com', 10.0.0.1, 'fd00::1']}}}`},
		},
		"AltNamesChanged": {
			reason: "the certificate is reissued for it",
			args:   args{before: managed, object: `spec: {tls: {client: {mode: Managed, altNames: [a.example]}, peer: {mode: Managed}}}`},
		},
		"ClientOn": {
			reason: "member by member",
			args:   args{before: `{}`, object: `spec: {tls: {client: {mode: Managed}}}`},
		},
		"ClientBoth": {
			reason: "members serve clients with TLS and without",
			args:   args{before: `{}`, object: `spec: {tls: {client: {mode: Managed, plaintext: Allowed}}}`},
		},
		"ClientOff": {
			reason: "the same the other way",
			args:   args{before: managed, object: `spec: {tls: {client: {mode: Disabled}, peer: {mode: Managed}}}`},
		},
		"ClientOwn": {
			reason: "from Quorate's certificates to others'",
			args:   args{before: managed, object: `spec: {tls: {client: {mode: Secret, secretRef: {name: a}, operatorSecretRef: {name: b}, plaintext: Refused}, peer: {mode: Managed}}}`},
		},
		"ClientLeftOut": {
			reason: "what is in force would stay so, or become plain text",
			args:   args{before: managed, object: `spec: {tls: {peer: {mode: Managed}}}`},
			want:   []string{removed},
		},
		"PlaintextOfDisabled": {
			reason: "it is plain text by itself",
			args:   args{object: `spec: {tls: {client: {mode: Disabled, plaintext: Allowed}}}`},
			want:   []string{`spec.tls.client.plaintext: Invalid value: spec.tls.client.plaintext is for modes Managed and Secret: mode Disabled serves plain text alone, so leave it out`},
		},
		"PlaintextOther": {
			reason: "it is one of two words",
			args:   args{object: `spec: {tls: {client: {mode: Managed, plaintext: 'Yes'}}}`},
			want:   []string{`spec.tls.client.plaintext: Unsupported value: "Yes": supported values: "Allowed", "Refused"`},
		},
		"PeerOn": {
			reason: "peer URLs would change",
			args:   args{before: `spec: {tls: {client: {mode: Managed}}}`, object: managed},
			want:   []string{peer},
		},
		"AllLeftOut": {
			reason: "to say nothing is to say Disabled for peers, and leaves it open for clients",
			args:   args{before: managed, object: `{}`},
			want:   []string{removed, peer},
		},
		"SecretRenamed": {
			reason: "Pods mount it by its name, and are recreated",
			args: args{
				before: own,
				object: `spec: {tls: {client: {mode: Secret, secretRef: {name: other}, operatorSecretRef: {name: b}}, peer: {mode: Secret, secretRef: {name: c}}}}`,
			},
		},
		"PeerSecretRenamed": {
			reason: "the same of members",
			args: args{
				before: own,
				object: `spec: {tls: {client: {mode: Secret, secretRef: {name: a}, operatorSecretRef: {name: b}}, peer: {mode: Secret, secretRef: {name: other}}}}`,
			},
			want: []string{`spec.tls.peer.secretRef: Invalid value: the name of the Secret cannot be changed, because the Pods mount it: revert it, and replace what the Secret holds`},
		},
		"SecretWithoutOperators": {
			reason: "Quorate has to ask the members",
			args:   args{object: `spec: {tls: {client: {mode: Secret, secretRef: {name: a}}}}`},
			want:   []string{both},
		},
		"ManagedWithSecret": {
			reason: "one of both is meant",
			args:   args{object: `spec: {tls: {client: {mode: Managed, secretRef: {name: a}}}}`},
			want:   []string{both},
		},
		"PeerWithoutSecret": {
			reason: "there is nothing to mount",
			args:   args{object: `spec: {tls: {peer: {mode: Secret}}}`},
			want:   []string{`spec.tls.peer.secretRef: Invalid value: spec.tls.peer.secretRef is for mode Secret, which needs it: the certificate with which members know each other`},
		},
		"AltNamesOfOthers": {
			reason: "they would go nowhere",
			args:   args{object: `spec: {tls: {client: {mode: Secret, secretRef: {name: a}, operatorSecretRef: {name: b}, altNames: [a.example]}}}`},
			want:   []string{`spec.tls.client.altNames: Invalid value: spec.tls.client.altNames go into certificates that Quorate issues (mode Managed): with mode Secret put them into your own certificate`},
		},
		"Rotation": {
			reason: "at any time",
			args:   args{before: managed, object: `spec: {tls: {client: {mode: Managed, rotateAuthority: '2026-11-26', rotationWait: 0s}, peer: {mode: Managed, rotateAuthority: stolen}}}`},
		},
		"RotationOfOthers": {
			reason: "what others issue they rotate",
			args:   args{object: `spec: {tls: {client: {mode: Secret, secretRef: {name: a}, operatorSecretRef: {name: b}, rotationWait: 1h}}}`},
			want:   []string{`spec.tls.client: Invalid value: spec.tls.client.rotateAuthority and spec.tls.client.rotationWait are for mode Managed: with mode Secret you rotate the authority yourself (docs/tls.md#your-own-certificates-and-cert-manager)`},
		},
		"PeerRotationOfOthers": {
			reason: "the same of members",
			args:   args{object: `spec: {tls: {peer: {mode: Secret, secretRef: {name: c}, rotateAuthority: a}}}`},
			want:   []string{`spec.tls.peer.rotateAuthority: Invalid value: spec.tls.peer.rotateAuthority is for mode Managed: with mode Secret you rotate the authority yourself (docs/tls.md#your-own-certificates-and-cert-manager)`},
		},
		"RotationWaitForm": {
			reason: "a day has 24 hours",
			args:   args{object: `spec: {tls: {client: {mode: Managed, rotationWait: 7d}}}`},
			want:   []string{`spec.tls.client.rotationWait: Invalid value: "7d": spec.tls.client.rotationWait must be a duration from 0s to 8760h, for example 168h or 1h30m`},
		},
		"RotationWaitLong": {
			reason: "more than a year",
			args:   args{object: `spec: {tls: {client: {mode: Managed, rotationWait: 9000h}}}`},
			want:   []string{`spec.tls.client.rotationWait: Invalid value: "9000h": spec.tls.client.rotationWait must be a duration from 0s to 8760h, for example 168h or 1h30m`},
		},
		"AltNameAsURL": {
			reason: "a certificate has names",
			args:   args{object: `spec: {tls: {client: {mode: Managed, altNames: ['https://etcd.example.com:2379']}}}`},
			want:   []string{`spec.tls.client.altNames[0]: Invalid value: "https://etcd.example.com:2379": ` + names},
		},
		"NoMode": {
			reason: "a plane that is named has a mode",
			args:   args{object: `spec: {tls: {client: {altNames: [a.example]}}}`},
			want:   []string{`spec.tls.client.mode: Required value`},
		},
		"OtherMode": {
			reason: "what is to come is not there yet",
			args:   args{object: `spec: {tls: {peer: {mode: Issuer}}}`},
			want:   []string{`spec.tls.peer.mode: Unsupported value: "Issuer": supported values: "Managed", "Secret", "Disabled"`},
		},
	})
}

package v1alpha1

import "testing"

func TestAdmitTLS(t *testing.T) {
	t.Parallel()
	const (
		removed = `spec.tls.client: Invalid value: spec.tls.client cannot be left out while its mode is Secret, because it names the Secrets: write spec.tls.client.mode Managed or Disabled for another mode`
		peer    = `spec.tls.peer: Invalid value: spec.tls.peer.mode cannot be changed yet: write the one in force (status.tls.peer.mode). To change it, create another EtcdCluster with the mode that you want, and restore a snapshot of this one into it (spec.bootstrap.restore)`
		// What the status says: nothing started yet, or which modes are in force.
		fresh   = `, status: {observedGeneration: 1, tls: {client: {mode: Managed}, peer: {mode: Managed}}}}`
		secured = `, status: {observedGeneration: 1, nextOrdinal: 3, tls: {client: {mode: Managed}, peer: {mode: Managed}}}}`
		plain   = `, status: {observedGeneration: 1, clusterID: c1, nextOrdinal: 3, tls: {client: {mode: Disabled}, peer: {mode: Disabled}}}}`
		owned   = `, status: {observedGeneration: 1, clusterID: c1, nextOrdinal: 3, tls: {client: {mode: Secret}, peer: {mode: Secret}}}}`
		before  = `, status: {observedGeneration: 1, clusterID: c1, nextOrdinal: 3}}` // of a release that did not know TLS
		nothing = `{spec: {}`
		off     = `{spec: {tls: {client: {mode: Disabled}, peer: {mode: Disabled}}}`
		on      = `{spec: {tls: {client: {mode: Managed}, peer: {mode: Managed}}}`
		others  = `{spec: {tls: {client: {mode: Secret, secretRef: {name: a}, operatorSecretRef: {name: b}}, peer: {mode: Secret, secretRef: {name: c}}}}`
		both    = `spec.tls.client: Invalid value: spec.tls.client.secretRef and spec.tls.client.operatorSecretRef are for mode Secret, which needs both: the members' certificate, and the client certificate with which Quorate and its backups connect`
		names   = `spec.tls.client.altNames: each is a DNS name in lower case, such as etcd.example.com or *.etcd.example.com, or an IP address, without port and scheme`
		managed = `spec: {tls: {client: {mode: Managed}, peer: {mode: Managed}}}`
		own     = `spec: {tls: {client: {mode: Secret, secretRef: {name: a}, operatorSecretRef: {name: b}}, peer: {mode: Secret, secretRef: {name: c}}}}`
	)
	admission(t, map[string]admissionCase{
		"Managed":       {reason: "Quorate issues all", args: args{object: managed}},
		"Own":           {reason: "others issue all", args: args{object: own}},
		"OnePlane":      {reason: "each plane is by itself", args: args{object: `spec: {tls: {peer: {mode: Managed}}}`}},
		"Unstarted":     {reason: "nothing was made of it yet", args: args{before: nothing + fresh, object: off + fresh}},
		"ManagedSaid":   {reason: "what is in force can be said later", args: args{before: nothing + secured, object: on + secured}},
		"DisabledSaid":  {reason: "also where that is not the default any more", args: args{before: nothing + plain, object: off + plain}},
		"EarlierSaid":   {reason: "a release that knew no TLS made it", args: args{before: nothing + before, object: off + before}},
		"ManagedUnsaid": {reason: "it stays in force", args: args{before: on + secured, object: nothing + secured}},
		"Corrected":     {reason: "it was created again over volumes of another mode", args: args{before: off + secured, object: on + secured}},
		"CorrectedAway": {reason: "to say nothing is right as well", args: args{before: off + secured, object: nothing + secured}},
		"LeftWrong":     {reason: "the rest of the spec can be changed", args: args{before: off + secured, object: `{spec: {replicas: 5, tls: {client: {mode: Disabled}, peer: {mode: Disabled}}}` + secured}},
		"SecretUnsaid": {
			reason: "the names of the Secrets would not be known", args: args{before: others + owned, object: nothing + owned},
			want: []string{removed, peer},
		},
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
			args:   args{before: nothing + plain, object: `{spec: {tls: {client: {mode: Managed}}}` + plain},
		},
		"ClientBoth": {
			reason: "members serve clients with TLS and without",
			args:   args{before: nothing + plain, object: `{spec: {tls: {client: {mode: Managed, plaintext: Allowed}}}` + plain},
		},
		"ClientOff": {
			reason: "the same the other way",
			args:   args{before: on + secured, object: `{spec: {tls: {client: {mode: Disabled}, peer: {mode: Managed}}}` + secured},
		},
		"ClientOwn": {
			reason: "from Quorate's certificates to others'",
			args:   args{before: on + secured, object: `{spec: {tls: {client: {mode: Secret, secretRef: {name: a}, operatorSecretRef: {name: b}, plaintext: Refused}, peer: {mode: Managed}}}` + secured},
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
			args:   args{before: off + plain, object: `{spec: {tls: {client: {mode: Disabled}, peer: {mode: Managed}}}` + plain},
			want:   []string{peer},
		},
		"DefaultOff": {
			reason: "what the default has put in force is in force for peers",
			args:   args{before: nothing + secured, object: off + secured},
			want:   []string{peer},
		},
		"EarlierOn": {
			reason: "a release that knew no TLS made it",
			args:   args{before: nothing + before, object: on + before},
			want:   []string{peer},
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

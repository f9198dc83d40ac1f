package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/pki"
	"quorate.dev/reconcile/podstatus"
)

// A user who may create Secrets may create one of our names, with our label, before the operator
// does, and would know the keys in it. So a label says nothing here. A Secret is taken if this
// EtcdCluster owns it, by UID. One without an owner is taken if it holds the authority that the
// status names, or what that has issued: a person has put it back, or a tool has removed its owner.

// ours is a Secret of this cluster; nil where there is none. One without an owner has to be proven,
// and gets its owner; else unknown says what to do.
func (l *inspection) ours(ctx context.Context, name string, proven func(map[string][]byte) bool, unknown error) (*corev1.Secret, error) {
	secret, err := l.get(ctx, name)
	if err != nil || secret == nil {
		return nil, err
	}
	foreign, terminating := belongs(l.c, secret)
	unowned := metav1.GetControllerOf(secret) == nil
	known := unowned && proven(secret.Data)
	switch {
	case foreign, unowned && !known && secret.Labels[api.LabelCluster] != l.c.Name:
		return nil, &foreignError{kind: "Secret", name: name, whose: whose(secret)}
	case terminating: // also what an earlier cluster has left to the garbage collector
		return nil, &terminatingError{kind: "Secret", name: name}
	case unowned && !known:
		return nil, unknown
	case unowned && l.writes:
		err := l.write(ctx, secret, name, secret.Data, issuing("Took over Secret "+name+", which had no owner"))
		if apierrors.IsConflict(err) {
			return nil, err
		}
		switch { // it is good all the same
		case err != nil && secret.Labels[api.LabelCluster] != l.c.Name: // the policy of an installation refuses that
			l.warn(api.ReasonCertificates, fmt.Sprintf("Secret %[1]s has neither an owner nor the label of this EtcdCluster, without which the operator may not write it: run: kubectl label secret %[1]s --namespace=%[2]s %[3]s=%[4]s --overwrite",
				name, l.c.Namespace, api.LabelCluster, l.c.Name))
		case err != nil:
			l.warn(api.ReasonCertificates, fmt.Sprintf("Secret %s has no owner, and cannot be given one: %s", name, podstatus.FirstLine(err.Error())))
		}
	}
	return secret, nil
}

// holds reports whether a Secret holds an authority that the members trust. One with another
// authority beside it must have the key as well: the certificate is no secret.
func (l *inspection) holds(p plane) func(map[string][]byte) bool {
	return func(data map[string][]byte) bool {
		if !trustsOnly(data[api.SecretCert], p.known()) {
			return false
		}
		_, err := pki.ReadAuthority(data, files, l.now)
		return err == nil || len(data[api.SecretNextCert]) == 0 && len(data[api.SecretPreviousCert]) == 0
	}
}

// trustsOnly reports whether all certificates in a file are known.
func trustsOnly(file []byte, known []string) bool {
	prints := pki.Fingerprints(file)
	return len(prints) > 0 && !slices.ContainsFunc(prints, func(one string) bool { return !slices.Contains(known, one) })
}

// issuedBy reports whether a Secret holds what authorities have issued for this use, and nothing
// else that is trusted.
func (l *inspection) issuedBy(authorities []string, s issuedSecret) func(map[string][]byte) bool {
	return func(data map[string][]byte) bool {
		if !trustsOnly(data[api.SecretCA], authorities) {
			return false
		}
		for _, leaf := range s.certificates {
			use := leaf.use
			use.Hosts = nil // they may have changed since
			if _, err := pki.Check(data, leaf.files, use, l.now); err != nil {
				return false
			}
		}
		return true
	}
}

// operators is the Secret with which members are asked.
func (l *inspection) operators(ctx context.Context, p plane) (*corev1.Secret, error) {
	for _, s := range p.secrets {
		if s.name == l.c.OperatorSecret() {
			return l.ours(ctx, s.name, l.issuedBy(append(p.known(), append(l.found.clientRotation.trusts, l.found.client)...), s), l.replaceable(s.name))
		}
	}
	return nil, nil
}

// unownedSecret begins what is said of a Secret that is not taken.
const unownedSecret = "Secret %s has the label of this EtcdCluster, and is neither owned by it nor known from its status: whatever created it may know its key, and it is not used. "

// errUnowned is the same where nothing can be issued again: it is not told to delete the Secret.
var errUnowned = errors.New("it has no owner, and the status does not name the authority that issued it")

// adoptable says what to do about an authority that is not known.
func (l *inspection) adoptable(name string) error {
	c := l.c
	owner := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"%s","kind":"%s","name":"%s","uid":"%s","controller":true,"blockOwnerDeletion":true}]}}`,
		api.SchemeGroupVersion, api.EtcdClusterKind.Kind, c.Name, c.UID)
	return &certificatesError{string(membership.ForeignObject), fmt.Sprintf(unownedSecret+
		"If you neither restored it nor kept it when you deleted an earlier EtcdCluster, run: kubectl delete secret %[1]s --namespace=%[2]s. If you did, and running members or applications trust it, run: kubectl patch secret %[1]s --namespace=%[2]s --type=merge --patch='%[3]s'",
		name, c.Namespace, owner)}
}

// replaceable says what to do about a Secret that can be issued again.
func (l *inspection) replaceable(name string) error {
	return &certificatesError{string(membership.ForeignObject), fmt.Sprintf(unownedSecret+
		"To have it issued again, run: kubectl delete secret %[1]s --namespace=%[2]s", name, l.c.Namespace)}
}

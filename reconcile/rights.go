package reconcile

import (
	"cmp"
	"fmt"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// Grant says how the operator gets the rights on Secrets that a cluster needs: the commands give
// them in its namespace alone. They are applied, because there may be a Role of that name with
// less, or a RoleBinding of the operator that was there before.
func (r *Reconciler) Grant(c *api.EtcdCluster) string {
	role, verbs := "quorate-secrets", "get,create,patch"
	if c.ClientTLSMode() != api.TLSManaged && c.PeerTLSMode() != api.TLSManaged {
		role, verbs = "quorate-secrets-get", "get"
	}
	account := cmp.Or(r.ServiceAccount, render.InstallNamespace+":quorate")
	const apply = "--dry-run=client --output=yaml | kubectl apply --server-side --force-conflicts -f -"
	return fmt.Sprintf("kubectl create role %[1]s --namespace=%[2]s --verb=%[3]s --resource=secrets %[5]s; "+
		"kubectl create rolebinding %[1]s --namespace=%[2]s --role=%[1]s --serviceaccount=%[4]s %[5]s", role, c.Namespace, verbs, account, apply)
}

// orWithoutTLS is the end of such a message for a cluster that may have no TLS yet because its spec
// says nothing: the other way to go on.
func orWithoutTLS(c *api.EtcdCluster) string {
	if c.Begun() || c.AskedClientTLSMode() != "" || c.AskedPeerTLSMode() != "" {
		return ""
	}
	return ". For a cluster without TLS, set spec.tls.client.mode and spec.tls.peer.mode to Disabled instead"
}

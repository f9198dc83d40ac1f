package v1alpha1

import "cmp"

// EtcdName is the name of the role in etcd.
func (r *EtcdRole) EtcdName() string { return cmp.Or(string(r.Spec.Name), r.Name) }

// EtcdName is the name of the user in etcd.
func (u *EtcdUser) EtcdName() string { return cmp.Or(string(u.Spec.Name), u.Name) }

// WantsAuth reports whether etcd is to authenticate clients.
func (c *EtcdCluster) WantsAuth() bool { return c.Spec.Auth != nil && c.Spec.Auth.Enabled }

// HasAuth reports whether etcd authenticates clients, or is about to.
func (c *EtcdCluster) HasAuth() bool { return c.Status.Auth != nil && c.Status.Auth.Enabled }

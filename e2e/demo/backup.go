package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"quorate.dev/e2e/node"
)

const (
	// backupFile is the EtcdBackup that the demo applies. Its store is the S3 server of
	// node.S3Manifests.
	backupFile = "e2e/demo/backup.yaml"
	// restoredFile is the EtcdCluster of the sample, which starts from the newest verified snapshot
	// in that store.
	restoredFile = "e2e/demo/restored.yaml"
)

var backupClues = [][]string{
	{"describe", "etcdbackup"},
	{"get", "jobs,pods", "--output=wide"},
	{"logs", "--selector=etcd.quorate.dev/backup", "--all-containers", "--tail=20"},
}

// objectStore runs an S3 server in the cluster. Its objects are lost with its Pod: it is for this
// demo alone.
func objectStore(ctx context.Context, d *demo) error {
	if _, err := d.kubectl.output(ctx, node.S3Manifests, "apply", "--server-side", "--filename=-"); err != nil {
		return err
	}
	_, err := d.kubectl.output(ctx, nil, "rollout", "status", "deployment/s3", "--timeout="+patience.String())
	return err
}

// backup takes a snapshot each time: an EtcdBackup is a record, so the one of the last run is
// deleted first.
func backup(ctx context.Context, d *demo) error {
	if _, err := d.kubectl.output(ctx, nil, "delete", "etcdbackup/"+name, "--ignore-not-found", "--timeout=1m"); err != nil {
		return err
	}
	if err := d.apply(ctx, backupFile); err != nil {
		return err
	}
	if _, err := d.kubectl.output(ctx, nil, "wait", "etcdbackup/"+name, "--for=condition=Ready", fmt.Sprintf("--timeout=%s", patience)); err != nil {
		return err
	}
	return d.kubectl.show(ctx, "get", "etcdbackup", "--output=wide")
}

// destroy deletes the cluster and its volumes.
func destroy(ctx context.Context, d *demo) error {
	for _, args := range [][]string{
		{"delete", "etcdcluster/" + d.cluster.Name, "--timeout=" + patience.String()},
		{"delete", "pvc", "--selector=etcd.quorate.dev/cluster=" + d.cluster.Name, "--timeout=" + patience.String()},
	} {
		if err := d.kubectl.show(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// restore brings the cluster back, and reads what was written to the one that was destroyed.
func restore(ctx context.Context, d *demo) error {
	if err := d.apply(ctx, restoredFile); err != nil {
		return err
	}
	if err := watchUntilReady(ctx, d.kubectl.kubeconfig, d.cluster); err != nil {
		return err
	}
	get := []string{"exec", d.cluster.Name + "-0", "--", "etcdctl", "get", "greeting"}
	fmt.Printf("     $ kubectl %s\n", quoted(get))
	out, err := d.kubectl.output(ctx, nil, get...)
	fmt.Print(indented(out))
	if err == nil && !strings.Contains(out, "hello from etcd") {
		return errors.New("the restored cluster does not have the key that was written before the backup")
	}
	return err
}

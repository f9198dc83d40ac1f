package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind of Quorate.
const GroupName = "etcd.quorate.dev"

// SchemeGroupVersion is the group and version of this package; the generated apply-configurations
// expect this name.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// The kinds, as owner references and events write them.
var (
	EtcdClusterKind        = SchemeGroupVersion.WithKind("EtcdCluster")
	EtcdBackupKind         = SchemeGroupVersion.WithKind("EtcdBackup")
	EtcdBackupScheduleKind = SchemeGroupVersion.WithKind("EtcdBackupSchedule")
	EtcdRestoreKind        = SchemeGroupVersion.WithKind("EtcdRestore")
	EtcdRoleKind           = SchemeGroupVersion.WithKind("EtcdRole")
	EtcdUserKind           = SchemeGroupVersion.WithKind("EtcdUser")
)

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion, &EtcdCluster{}, &EtcdClusterList{}, &EtcdBackup{}, &EtcdBackupList{}, &EtcdBackupSchedule{}, &EtcdBackupScheduleList{}, &EtcdRestore{}, &EtcdRestoreList{},
		&EtcdRole{}, &EtcdRoleList{}, &EtcdUser{}, &EtcdUserList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}

package render

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// Where the agent finds what its store needs.
const (
	storeVolume = "store"
	storeMount  = "/var/lib/quorate/store"

	authorityVolume = "store-ca"
	authorityMount  = "/etc/quorate/store-ca"

	credentialsVolume = "store-credentials"
	credentialsMount  = "/etc/quorate/store-credentials"
	// credentialsFile is the key of the Secret that Google's libraries take as a file.
	credentialsFile = "credentials.json"
)

// storeConfig is the document that the agent takes as --store. It holds no secret.
func storeConfig(s *api.BackupStore) (string, error) {
	config := map[string]any{}
	switch {
	case s.S3 != nil:
		s3 := filled(map[string]any{
			"bucket": s.S3.Bucket, "prefix": string(s.S3.Prefix), "endpoint": s.S3.Endpoint, "region": s.S3.Region,
			"serverSideEncryption": s.S3.ServerSideEncryption, "kmsKeyID": s.S3.KMSKeyID,
		})
		if s.S3.PathStyle != nil {
			s3["pathStyle"] = *s.S3.PathStyle
		}
		if s.S3.CABundle != nil {
			s3["caBundle"] = path.Join(authorityMount, s.S3.CABundle.Key)
		}
		config["s3"] = s3
	case s.GCS != nil:
		config["gcs"] = filled(map[string]any{"bucket": s.GCS.Bucket, "prefix": string(s.GCS.Prefix)})
	case s.Azure != nil:
		config["azure"] = filled(map[string]any{"account": s.Azure.Account, "container": s.Azure.Container, "prefix": string(s.Azure.Prefix)})
	case s.Volume != nil:
		config["directory"] = map[string]any{"path": storeMount}
	default:
		return "", fmt.Errorf("a store is exactly one of s3, gcs, azure and volume")
	}
	raw, err := json.Marshal(config)
	return string(raw), err
}

// filled is without the members that are empty.
func filled(members map[string]any) map[string]any {
	for name, value := range members {
		if value == "" {
			delete(members, name)
		}
	}
	return members
}

// Location is what a person calls an object of a store.
func Location(s *api.BackupStore, object string) string {
	switch {
	case s.S3 != nil:
		return located("s3://"+s.S3.Bucket, string(s.S3.Prefix), object)
	case s.GCS != nil:
		return located("gs://"+s.GCS.Bucket, string(s.GCS.Prefix), object)
	case s.Azure != nil:
		return located("azblob://"+s.Azure.Account+"/"+s.Azure.Container, string(s.Azure.Prefix), object)
	case s.Volume != nil:
		return located("persistentvolumeclaim://"+s.Volume.ClaimName, s.Volume.SubPath, object)
	default:
		return ""
	}
}

func located(root, prefix, object string) string {
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		root += "/" + prefix
	}
	return root + "/" + object
}

// reaches gives a container of the agent what its store needs: credentials, certificate authority,
// volume.
func reaches(container *corev1ac.ContainerApplyConfiguration, s *api.BackupStore) *corev1ac.ContainerApplyConfiguration {
	switch {
	case s.Credentials == nil:
	case s.GCS != nil:
		container.WithEnv(corev1ac.EnvVar().WithName("GOOGLE_APPLICATION_CREDENTIALS").WithValue(path.Join(credentialsMount, credentialsFile)))
		container.WithVolumeMounts(readOnly(credentialsVolume, credentialsMount))
	default:
		container.WithEnvFrom(corev1ac.EnvFromSource().WithSecretRef(
			corev1ac.SecretEnvSource().WithName(s.Credentials.SecretRef.Name)))
	}
	if s.S3 != nil && s.S3.CABundle != nil {
		container.WithVolumeMounts(readOnly(authorityVolume, authorityMount))
	}
	if s.Volume != nil {
		mount := corev1ac.VolumeMount().WithName(storeVolume).WithMountPath(storeMount)
		if s.Volume.SubPath != "" {
			mount.WithSubPath(s.Volume.SubPath) // the kubelet makes it where it is missing
		}
		container.WithVolumeMounts(mount)
	}
	return container
}

func readOnly(volume, mount string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(mount).WithReadOnly(true)
}

// storeVolumes are the volumes of a Pod whose agent uses the store.
func storeVolumes(s *api.BackupStore) []*corev1ac.VolumeApplyConfiguration {
	var volumes []*corev1ac.VolumeApplyConfiguration
	if s.Credentials != nil && s.GCS != nil {
		volumes = append(volumes, corev1ac.Volume().WithName(credentialsVolume).WithSecret(corev1ac.SecretVolumeSource().
			WithSecretName(s.Credentials.SecretRef.Name).
			WithItems(corev1ac.KeyToPath().WithKey(credentialsFile).WithPath(credentialsFile))))
	}
	if s.S3 != nil && s.S3.CABundle != nil {
		ca := s.S3.CABundle
		volumes = append(volumes, corev1ac.Volume().WithName(authorityVolume).WithConfigMap(corev1ac.ConfigMapVolumeSource().
			WithName(ca.Name).
			WithItems(corev1ac.KeyToPath().WithKey(ca.Key).WithPath(ca.Key))))
	}
	if s.Volume != nil {
		volumes = append(volumes, corev1ac.Volume().WithName(storeVolume).WithPersistentVolumeClaim(
			corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(s.Volume.ClaimName)))
	}
	return volumes
}

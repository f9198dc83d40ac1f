package v1alpha1

// BackupStore is where snapshots are kept: exactly one of s3, gcs, azure and volume. It never holds
// a secret.
//
// +kubebuilder:validation:XValidation:rule="[has(self.s3), has(self.gcs), has(self.azure), has(self.volume)].filter(x, x).size() == 1",message="a store is exactly one of s3, gcs, azure and volume"
// +kubebuilder:validation:XValidation:rule="!has(self.volume) || (!has(self.credentials) && !has(self.serviceAccountName))",message="a volume needs no credentials: leave out credentials and serviceAccountName"
type BackupStore struct {
	// s3 is a bucket of Amazon S3, or of anything that speaks its protocol.
	// +optional
	S3 *S3Store `json:"s3,omitempty"`

	// gcs is a bucket of Google Cloud Storage.
	// +optional
	GCS *GCSStore `json:"gcs,omitempty"`

	// azure is a container of Azure Blob Storage.
	// +optional
	Azure *AzureStore `json:"azure,omitempty"`

	// volume is a PersistentVolumeClaim.
	// +optional
	Volume *VolumeStore `json:"volume,omitempty"`

	// credentials for the store. Default none: those of the workload identity of serviceAccountName
	// are found by themselves.
	// +optional
	Credentials *StoreCredentials `json:"credentials,omitempty"`

	// serviceAccountName is the ServiceAccount that the Pods of the backup run as, of the same
	// namespace, with the workload identity that may use the store (IRSA and Pod Identity on AWS,
	// Workload Identity on Google Cloud and Azure). It needs no right in Kubernetes, and its token
	// is not mounted. Default: the namespace's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// S3Store is a bucket of Amazon S3, or of anything that speaks its protocol.
//
// +kubebuilder:validation:XValidation:rule="!has(self.kmsKeyID) || (has(self.serverSideEncryption) && self.serverSideEncryption == 'aws:kms')",fieldPath=".kmsKeyID",message="s3.kmsKeyID is for s3.serverSideEncryption aws:kms: set that, or leave the key out"
// +kubebuilder:validation:XValidation:rule="!has(self.caBundle) || has(self.endpoint)",fieldPath=".caBundle",message="s3.caBundle is for a server of your own: set s3.endpoint, or leave it out"
type S3Store struct {
	// bucket is the name of the bucket, which must exist.
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][-A-Za-z0-9._]+[A-Za-z0-9]$')",message="s3.bucket is the name of a bucket alone, for example etcd-backups; the path within it is s3.prefix, the server is s3.endpoint"
	Bucket string `json:"bucket"`

	// prefix is what the key of every object begins with, for example prod/db. Default none.
	// +optional
	Prefix StorePrefix `json:"prefix,omitempty"`

	// endpoint is the URL of a server other than Amazon's, for example
	// https://minio.storage.svc:9000.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?# ]+/?$')",message="s3.endpoint must be http:// or https:// with a host and, if needed, a port, for example https://minio.storage.svc:9000"
	Endpoint string `json:"endpoint,omitempty"`

	// region of the bucket, for example eu-central-1. Default: what the environment of the Pod
	// says.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][-a-z0-9]*$')",message="s3.region must be the name of a region, for example eu-central-1"
	Region string `json:"region,omitempty"`

	// pathStyle puts the bucket into the path of the URL rather than into the host name. Default:
	// true with an endpoint, false without one.
	// +optional
	PathStyle *bool `json:"pathStyle,omitempty"`

	// serverSideEncryption is what the server encrypts objects with: AES256, or aws:kms. Default:
	// what the bucket is set to.
	// +optional
	// +kubebuilder:validation:Enum=AES256;aws:kms
	ServerSideEncryption string `json:"serverSideEncryption,omitempty"`

	// kmsKeyID is the key for serverSideEncryption aws:kms. Default: the key of the account.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	KMSKeyID string `json:"kmsKeyID,omitempty"`

	// caBundle is the certificate authority of a server of your own, in PEM. Default: those that
	// are publicly known.
	// +optional
	CABundle *ConfigMapKey `json:"caBundle,omitempty"`
}

// GCSStore is a bucket of Google Cloud Storage.
type GCSStore struct {
	// bucket is the name of the bucket, which must exist.
	// +required
	// +kubebuilder:validation:MaxLength=222
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][-a-z0-9._]+[a-z0-9]$')",message="gcs.bucket is the name of a bucket alone, for example etcd-backups; the path within it is gcs.prefix"
	Bucket string `json:"bucket"`

	// prefix is what the name of every object begins with, for example prod/db. Default none.
	// +optional
	Prefix StorePrefix `json:"prefix,omitempty"`
}

// AzureStore is a container of Azure Blob Storage.
type AzureStore struct {
	// account is the name of the storage account.
	// +required
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]{3,24}$')",message="azure.account must be the name of a storage account: 3 to 24 lower-case letters and digits"
	Account string `json:"account"`

	// container is the name of the container, which must exist.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{1,61}[a-z0-9])$')",message="azure.container must be the name of a container: 3 to 63 lower-case letters, digits and '-'"
	Container string `json:"container"`

	// prefix is what the name of every blob begins with, for example prod/db. Default none.
	// +optional
	Prefix StorePrefix `json:"prefix,omitempty"`
}

// VolumeStore is a PersistentVolumeClaim.
type VolumeStore struct {
	// claimName is the PersistentVolumeClaim, of the same namespace, which must exist. Snapshots on
	// the volumes of the cluster itself are lost with them: choose a storage class that is
	// somewhere else.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`

	// subPath is a directory on the volume, which is made where it is missing. Default: its root.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][-A-Za-z0-9._]*(/[A-Za-z0-9_][-A-Za-z0-9._]*)*$')",message="volume.subPath must be a path below the root of the volume, for example etcd/prod: no leading slash, no name that begins with a dot"
	SubPath string `json:"subPath,omitempty"`
}

// StorePrefix is what the key of every object of a store begins with.
//
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][-A-Za-z0-9._]*(/[A-Za-z0-9_][-A-Za-z0-9._]*)*/?$')",message="a prefix is names with slashes between them, for example prod/db: no leading slash, no name that begins with a dot"
type StorePrefix string

// StoreCredentials are how the Pods of a backup authenticate to a store.
type StoreCredentials struct {
	// secretRef names a Secret of the same namespace. With s3 and azure its keys become environment
	// variables of the agent, as the cloud's own tools read them: AWS_ACCESS_KEY_ID and
	// AWS_SECRET_ACCESS_KEY; AZURE_STORAGE_KEY, or AZURE_CLIENT_ID, AZURE_TENANT_ID and
	// AZURE_CLIENT_SECRET. With gcs its key credentials.json is the key file of a service account.
	// Only the Pods of the backup read it: the operator has no right to.
	// +required
	SecretRef SecretReference `json:"secretRef"`
}

// ConfigMapKey names a key of a ConfigMap of the same namespace.
type ConfigMapKey struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key within it, for example ca.crt.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && self != '..'",message="a key of a ConfigMap has letters, digits, '-', '_' and '.', for example ca.crt"
	Key string `json:"key"`
}

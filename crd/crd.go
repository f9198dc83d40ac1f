// Package crd says offline what an API server says of an object of Quorate's. It judges by the
// generated CustomResourceDefinitions, which the binary carries, with the library of the API
// server, in the steps of the API server and with its messages. Nothing else in Quorate says what
// a schema or one of its rules says; what depends on the version of etcd is in package render.
package crd

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"quorate.dev/templates"
)

// Kind is the schema of one kind.
type Kind struct {
	// Definition is the definition as an API server holds it.
	Definition *apiextensions.CustomResourceDefinition

	structural *structuralschema.Structural
	openapi    validation.SchemaValidator
	rules      *cel.Validator
}

// kinds are read, and their rules compiled, when they are first asked for: that takes longer than
// to judge many objects.
var kinds = map[string]func() (*Kind, error){
	"EtcdBackup":         once("etcdbackups"),
	"EtcdBackupSchedule": once("etcdbackupschedules"),
	"EtcdCluster":        once("etcdclusters"),
	"EtcdRestore":        once("etcdrestores"),
	"EtcdRole":           once("etcdroles"),
	"EtcdUser":           once("etcdusers"),
}

func once(plural string) func() (*Kind, error) {
	return sync.OnceValues(func() (*Kind, error) { return compile(plural) })
}

func compile(plural string) (*Kind, error) {
	data, err := templates.Install.ReadFile("install/crd/etcd.quorate.dev_" + plural + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read the definition of %s: %w", plural, err)
	}
	kind, err := read(data)
	if err != nil {
		return nil, fmt.Errorf("definition of %s: %w", plural, err)
	}
	return kind, nil
}

// Kinds are the names of all kinds, in their order.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// Of is the schema of a kind, such as EtcdCluster. It fails for a kind that is not Quorate's.
func Of(kind string) (*Kind, error) {
	load, ok := kinds[kind]
	if !ok {
		return nil, fmt.Errorf("no definition of kind %q", kind)
	}
	return load()
}

func read(data []byte) (*Kind, error) {
	v1 := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, v1); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)

	definition := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(v1, definition, nil); err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	definition.Status.StoredVersions = []string{v1.Spec.Versions[0].Name} // the API server does this when it stores it

	schema := definition.Spec.Validation.OpenAPIV3Schema // one version: the conversion to the internal type moves its schema up
	structural, err := structuralschema.NewStructural(schema)
	if err != nil {
		return nil, fmt.Errorf("make structural: %w", err)
	}
	openapi, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		return nil, fmt.Errorf("make a validator: %w", err)
	}
	return &Kind{
		Definition: definition,
		structural: structural,
		openapi:    openapi,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

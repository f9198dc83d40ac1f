package v1alpha1

import "testing"

func TestAdmitServices(t *testing.T) {
	t.Parallel()
	const ofClass = `spec: {services: {client: {type: LoadBalancer, loadBalancerClass: example.com/internal}}}`
	admission(t, map[string]admissionCase{
		"Full": {
			reason: "all of the Services",
			args: args{object: `spec: {services: {headless: {metadata: {labels: {a: b}, annotations: {a: b}}}, client: {metadata: {labels: {a: b}, annotations: {a: b}},
				type: LoadBalancer, loadBalancerClass: service.k8s.aws/nlb, ipFamilies: [IPv6, IPv4], ipFamilyPolicy: RequireDualStack}}}`},
		},
		"NodePort": {
			reason: "a port of each node",
			args:   args{object: `spec: {services: {client: {type: NodePort}}}`},
		},
		"ExternalName": {
			reason: "a name leads to no member",
			args:   args{object: `spec: {services: {client: {type: ExternalName}}}`},
			want:   []string{`spec.services.client.type: Unsupported value: "ExternalName": supported values: "ClusterIP", "NodePort", "LoadBalancer"`},
		},
		"ClassAlone": {
			reason: "Kubernetes refuses it",
			args:   args{object: `spec: {services: {client: {loadBalancerClass: internal}}}`},
			want:   []string{`spec.services.client.loadBalancerClass: Invalid value: spec.services.client.loadBalancerClass is for spec.services.client.type LoadBalancer: set that, or leave the class out`},
		},
		"ClassMalformed": {
			reason: "it has the form of a label's key",
			args:   args{object: `spec: {services: {client: {type: LoadBalancer, loadBalancerClass: a b}}}`},
			want:   []string{`spec.services.client.loadBalancerClass: Invalid value: "a b": spec.services.client.loadBalancerClass must be a name such as internal-vip or example.com/internal-vip`},
		},
		"ClassOther": {
			reason: "Kubernetes keeps it",
			args:   args{before: ofClass, object: `spec: {services: {client: {type: LoadBalancer, loadBalancerClass: example.com/other}}}`},
			want:   []string{`spec.services.client.loadBalancerClass: Invalid value: spec.services.client.loadBalancerClass: Kubernetes keeps the class of a Service of type LoadBalancer: revert it, or set spec.services.client.type to ClusterIP first`},
		},
		"ClassNoMore": {
			reason: "as the type is another one",
			args:   args{before: ofClass, object: `spec: {services: {client: {type: ClusterIP}}}`},
		},
		"FamilyTwice": {
			reason: "each family once",
			args:   args{object: `spec: {services: {client: {ipFamilies: [IPv4, IPv4], ipFamilyPolicy: PreferDualStack}}}`},
			want:   []string{`spec.services.client.ipFamilies: Invalid value: spec.services.client.ipFamilies: name each family once`},
		},
		"FamiliesOfOneStack": {
			reason: "Kubernetes refuses it",
			args:   args{object: `spec: {services: {client: {ipFamilies: [IPv4, IPv6]}}}`},
			want:   []string{`spec.services.client.ipFamilyPolicy: Invalid value: spec.services.client.ipFamilies with two families needs spec.services.client.ipFamilyPolicy PreferDualStack or RequireDualStack: set it, or name one family`},
		},
		"FamilyUnknown": {
			reason: "there are two",
			args:   args{object: `spec: {services: {client: {ipFamilies: [IPv5]}}}`},
			want:   []string{`spec.services.client.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"`},
		},
	})
}

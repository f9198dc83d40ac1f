package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestModeInForce holds for both ports.
func TestModeInForce(t *testing.T) {
	t.Parallel()
	type args struct {
		asked, stands TLSMode
		clusterID     string
		nextOrdinal   int32
	}
	for name, tc := range map[string]struct {
		reason string
		args   args
		want   TLSMode
		client TLSMode // where it differs from that of peers
	}{
		"New":               {reason: "a cluster that says nothing is the safe one", want: TLSManaged},
		"NewDisabled":       {reason: "the spec decides of a new one", args: args{asked: TLSDisabled}, want: TLSDisabled},
		"NewSecret":         {reason: "the same", args: args{asked: TLSSecret}, want: TLSSecret},
		"Unstarted":         {reason: "what was decided stands, whatever is the default by now", args: args{stands: TLSDisabled}, want: TLSDisabled},
		"UnstartedDisabled": {reason: "the spec may change before a member has started", args: args{asked: TLSDisabled, stands: TLSManaged}, want: TLSDisabled},
		"Starting":          {reason: "from the first start on that of peers may not", args: args{asked: TLSDisabled, stands: TLSManaged, nextOrdinal: 3}, want: TLSManaged, client: TLSDisabled},
		"Formed":            {reason: "nor later", args: args{asked: TLSManaged, stands: TLSDisabled, clusterID: "c0", nextOrdinal: 3}, want: TLSDisabled, client: TLSManaged},
		"FormedUnsaid":      {reason: "the default is for new ones", args: args{stands: TLSDisabled, clusterID: "c0", nextOrdinal: 3}, want: TLSDisabled},
		"FormedManaged":     {reason: "what was in the spec may be left out", args: args{stands: TLSManaged, clusterID: "c0", nextOrdinal: 3}, want: TLSManaged},
		"Earlier":           {reason: "it was formed before there was TLS", args: args{clusterID: "c0", nextOrdinal: 3}, want: TLSDisabled},
		"EarlierManaged":    {reason: "or its status does not say yet what is in force", args: args{asked: TLSManaged, clusterID: "c0"}, want: TLSManaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &EtcdCluster{Status: EtcdClusterStatus{ClusterID: tc.args.clusterID, NextOrdinal: tc.args.nextOrdinal}}
			client := tc.client
			if client == "" {
				client = tc.want
			}
			if tc.args.asked != "" {
				c.Spec.TLS = &TLS{Client: &ClientTLS{Mode: tc.args.asked}, Peer: &PeerTLS{Mode: tc.args.asked}}
			}
			if tc.args.stands != "" {
				c.Status.TLS = &TLSStatus{Client: TLSPlaneStatus{Mode: tc.args.stands}, Peer: TLSPlaneStatus{Mode: tc.args.stands}}
			}
			if diff := cmp.Diff([]TLSMode{client, tc.want}, []TLSMode{c.ClientTLSMode(), c.PeerTLSMode()}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

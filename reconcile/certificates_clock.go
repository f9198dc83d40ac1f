package reconcile

import (
	"fmt"
	"time"

	api "quorate.dev/api/v1alpha1"
)

// mostSkew is how far the operator's clock may be from that of the API server. If the operator's
// clock were years ahead, every authority would look expired, and all Pods would be recreated at
// once.
const mostSkew = time.Hour

// clock returns an error if the operator's clock is too far from that of the API server to check or
// issue certificates. If the time of the API server is not known, the operator's clock is trusted.
func (l *inspection) clock() error {
	skew := l.r.ServerTime.Skew(l.now)
	way := "ahead of"
	if skew < 0 {
		skew, way = -skew, "behind"
	}
	if skew == 0 {
		return nil
	}
	return &certificatesError{api.ReasonCertificates, fmt.Sprintf("The clock of the operator is %s %s that of the API server, so certificates are neither checked nor issued. "+
		"Set the clock of the operator's node. Running members go on; no Pod is created or changed until this is fixed", skew, way)}
}

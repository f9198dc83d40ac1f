package membership

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// What a member answers is hostile input: its image is its owner's, and may answer anything. Every
// answer is bounded before it is decoded, planned with or shown. The bounds are many times what
// etcd says.
const (
	// mostAnswer is the size of an answer to one call, in bytes, after it is decompressed.
	mostAnswer = 256 << 10
	// mostHeader is the size of the headers of an answer. gRPC sends the text of an error as one.
	mostHeader = 8 << 10
	// mostListed is how many members etcd may list. The status of an EtcdCluster has room for so
	// many.
	mostListed = 32
	// mostAlarms is how many alarms may be raised.
	mostAlarms = 2 * mostListed
	// mostNumber is the largest number in a version. With it a version has at most 14 characters.
	mostNumber = 9999
	// mostVersion is how long a version may be as it is written.
	mostVersion = 64
	// mostShown is how long a name or the URLs of a member may be in a message.
	mostShown = 128
	// mostMetrics is the size of the metrics of a member, in bytes, and mostRead that of those
	// which are read.
	mostMetrics, mostRead = 4 << 20, 64 << 10
)

// toMembers are the options of each connection to a member. No proxy leads to one, whatever the
// environment says: members are inside of the network. A connection may be kept, so its buffers are
// small: a question and its answer have some hundred bytes. The windows are fixed, and as small as
// gRPC allows: otherwise gRPC measures the network with each answer. clientv3's service config
// would have gRPC connect again whenever a connection is closed. Without it the next call does.
var toMembers = []grpc.DialOption{
	grpc.WithNoProxy(), grpc.WithMaxHeaderListSize(mostHeader), grpc.WithConnectParams(reconnecting),
	grpc.WithReadBufferSize(smallBuffer), grpc.WithWriteBufferSize(smallBuffer),
	grpc.WithStaticStreamWindowSize(smallWindow), grpc.WithStaticConnWindowSize(smallWindow),
	grpc.WithIdleTimeout(idleFor), grpc.WithDisableServiceConfig(),
}

const (
	smallBuffer = 2 << 10
	smallWindow = 64 << 10
	// idleFor is how long a connection stays open without a question, such as that of an operator
	// that has ended its passes. A member at rest is asked every ten seconds.
	idleFor = time.Minute
)

// reconnecting is how a member is connected to that refuses connections, because its etcd is being
// started: gRPC tries again after a tenth of a second, and not after a whole one, which would be
// the longer part of what a restart takes.
var reconnecting = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: CallTimeout,
}

// shown is a text of a member as messages have it.
func shown(text string) string {
	if len(text) > mostShown {
		text = text[:mostShown] + "..."
	}
	return strings.ToValidUTF8(text, "")
}

// readFamilies are the metrics that readMetrics reads.
var readFamilies = []string{
	"etcd_server_has_leader", "etcd_server_id", "etcd_server_proposals_applied_total", "etcd_server_version", "grpc_server_started_total",
}

// onlyRead are the lines of the metrics that are read, with their types. The parser keeps a few
// hundred bytes for each line that it is given.
func onlyRead(metrics io.Reader) (io.Reader, error) {
	var kept bytes.Buffer
	lines := bufio.NewScanner(io.LimitReader(metrics, mostMetrics))
	for lines.Scan() {
		name := strings.TrimPrefix(lines.Text(), "# TYPE ")
		if end := strings.IndexAny(name, " {"); end >= 0 {
			name = name[:end]
		}
		if !slices.Contains(readFamilies, name) {
			continue
		}
		kept.Write(lines.Bytes())
		kept.WriteByte('\n')
		if kept.Len() > mostRead {
			return nil, fmt.Errorf("more than %d bytes of the metrics that are read", mostRead)
		}
	}
	return &kept, lines.Err()
}

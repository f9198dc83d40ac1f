package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quorate.dev/snapshot"
)

// restoreFlags say what becomes of a snapshot: one member's data. They are named as those of
// etcdutl.
type restoreFlags struct {
	options       snapshot.RestoreOptions
	markCompacted bool
}

func (r *restoreFlags) flags(f *pflag.FlagSet) {
	o := &r.options
	f.StringVar(&o.DataDir, "data-dir", "", "data directory to write; it must not exist, or be empty")
	f.StringVar(&o.WALDir, "wal-dir", "", "directory of the write-ahead log, where it is another one")
	f.StringVar(&o.Name, "name", "default", "name of the member")
	f.StringVar(&o.InitialCluster, "initial-cluster", "default=http://localhost:2380", "all members, as NAME=PEER-URL, separated by commas; the same for each")
	f.StringVar(&o.Token, "initial-cluster-token", "", "a word that no cluster had before; the same for each member (default, of one member alone: the time)")
	f.StringSliceVar(&o.PeerURLs, "initial-advertise-peer-urls", nil, "peer URLs of this member (default: those of its name in --initial-cluster)")
	f.StringVar(&o.EtcdVersion, "etcd-version", "", "version of etcd that will be started, such as 3.6.16; one that cannot read the snapshot is refused")
	f.Uint64Var(&o.BumpRevision, "bump-revision", 1_000_000_000, "how far revisions go on beyond those of the snapshot, so that clients see none go back; 0 leaves them and their history")
	f.BoolVar(&r.markCompacted, "mark-compacted", true, "end watches of before with an error; false is for --bump-revision 0 alone")
	f.Int64Var(&o.QuotaBytes, "quota-backend-bytes", 0, "quota that etcd will have; a larger snapshot is refused (default: any size)")
}

// read checks the flags, and fills in what follows from the others.
func (r *restoreFlags) read(now time.Time) (snapshot.RestoreOptions, error) {
	o := r.options
	if o.DataDir == "" {
		return o, errors.New("--data-dir is missing: write the directory that etcd will be started with, such as /var/lib/etcd")
	}
	members, err := initialCluster(o.InitialCluster)
	if err != nil {
		return o, err
	}
	own := members[o.Name]
	if len(own) == 0 {
		return o, fmt.Errorf("--name %s is not in --initial-cluster %s: write the name of one of its members", o.Name, o.InitialCluster)
	}
	if len(o.PeerURLs) == 0 {
		o.PeerURLs = own
	}
	if o.Token == "" {
		o.Token = "restored-" + now.UTC().Format("20060102t150405z")
		if len(members) > 1 {
			return o, fmt.Errorf("--initial-cluster-token is missing: write a word that no cluster had before, the same for each member, such as %s", o.Token)
		}
	}
	if o.KeepRevisions = o.BumpRevision == 0; o.KeepRevisions == r.markCompacted {
		return o, errors.New("--bump-revision 0 goes with --mark-compacted=false, and any other with --mark-compacted: write both, or neither")
	}
	return o, nil
}

// vacant refuses a directory with something in it before anything is fetched for it.
func vacant(dataDir string) error {
	if entries, err := os.ReadDir(dataDir); err == nil && len(entries) > 0 {
		return fmt.Errorf("--data-dir: %s is not empty, and nothing is written over: move it away first (mv %s %s.old)",
			dataDir, quoted(dataDir), quoted(strings.TrimRight(dataDir, "/")))
	}
	return nil
}

// initialCluster has the peer URLs of each member by its name.
func initialCluster(flag string) (map[string][]string, error) {
	members := map[string][]string{}
	for part := range strings.SplitSeq(flag, ",") {
		name, peer, ok := strings.Cut(strings.TrimSpace(part), "=")
		u, err := url.Parse(peer)
		if !ok || name == "" || err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("--initial-cluster: %q is no member: write NAME=PEER-URL, such as m1=http://10.0.0.1:2380", part)
		}
		members[name] = append(members[name], peer)
	}
	return members, nil
}

// nextCommand starts etcd on what was restored. Clients are served on the port before that of the
// peers, as is usual.
func nextCommand(o snapshot.RestoreOptions, size int64) string {
	var listenPeers, listenClients, advertise []string
	for _, peer := range o.PeerURLs {
		u, err := url.Parse(peer)
		if err != nil { // it was parsed before
			continue
		}
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			port = 2380
		}
		listen := u.Hostname()
		if net.ParseIP(listen) == nil && listen != "localhost" {
			listen = "0.0.0.0" // etcd does not listen on a name
		}
		at := func(host string, port int) string {
			return u.Scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
		}
		listenPeers = append(listenPeers, at(listen, port))
		listenClients = append(listenClients, at(listen, port-1))
		advertise = append(advertise, at(u.Hostname(), port-1))
	}
	words := []string{"etcd", "--name", o.Name, "--data-dir", o.DataDir}
	if o.WALDir != "" {
		words = append(words, "--wal-dir", o.WALDir)
	}
	words = append(words, "--listen-peer-urls", strings.Join(listenPeers, ","), "--listen-client-urls", strings.Join(listenClients, ","),
		"--advertise-client-urls", strings.Join(advertise, ","))
	switch {
	case o.QuotaBytes > 0:
		words = append(words, "--quota-backend-bytes", strconv.FormatInt(o.QuotaBytes, 10))
	case size >= defaultQuota:
		words = append(words, "--quota-backend-bytes", strconv.FormatInt(4*defaultQuota, 10))
	}
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

// defaultQuota is what etcd lets a database grow to where no flag says otherwise.
const defaultQuota = 2 << 30

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:=,+@%", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

package snapshot

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The names of snapshots are parts of keys and of file names, which have at most 255 bytes.
var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,218}[a-z0-9])?$`)

func checkName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q is no name of a snapshot: write small letters, digits, '-' and '.', at most 220, with a letter or a digit at both ends", name)
	}
	return nil
}

func defaultName(cluster string, now time.Time) string {
	word := cluster[strings.LastIndex(cluster, "/")+1:]
	return cmp.Or(word, "etcd") + "-" + now.UTC().Format("20060102t150405z")
}

func manifestKey(name string) string     { return name + ".manifest.json" }
func verificationKey(name string) string { return name + ".verified.json" }

func dataKey(name string, encrypted bool) string {
	if encrypted {
		return name + ".db.zst.age"
	}
	return name + ".db.zst"
}

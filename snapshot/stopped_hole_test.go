package snapshot

import (
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// TestHoleInLog: a page in the middle of the last file of the log is lost, and records follow it.
// All that follows is lost with it, since etcd does not read on either; it is told how much that
// is.
func TestHoleInLog(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		behind int64 // the beginning of a record
	}{
		"AtRecord": {reason: "it begins as what etcd allocates in advance"},
		"InRecord": {reason: "it begins as a torn end", behind: 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newStoppedLog(t, filepath.Join(t.TempDir(), "wal"))
			for from := uint64(1); from < 2000; from += 100 {
				l.entries(2, from, from+99, from+98)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := filesIn(l.dir, ".wal")
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.OpenFile(files[0], os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			decoder, record := wal.NewDecoder(fileutil.NewFileReader(file)), &walpb.Record{}
			for range 500 {
				if err := decoder.Decode(record); err != nil {
					t.Fatal(err)
				}
				if record.GetType() == wal.CrcType {
					decoder.UpdateCRC(record.GetCrc())
				}
			}
			if _, err := file.WriteAt(make([]byte, 4096), decoder.LastOffset()+tc.behind); err != nil {
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			log, err := readLog(t.Context(), files)
			const most, least = 2000, 40_000
			if err != nil || log.index >= most || log.unreadable < least {
				t.Errorf("%s: the log ends at entry %d of %d, with %d bytes behind it, %v; want %d bytes at least", tc.reason, log.index, most, log.unreadable, err, least)
			}
			for indexed, damaged := range map[uint64]bool{log.index: false, log.index + 1: true} {
				state := StoppedState{LastIndex: log.index, DatabaseIndex: indexed, Unreadable: log.unreadable}
				if err := state.damagedLog(); (err != nil) != damaged {
					t.Errorf("%s: the database has entries up to %d, and the log up to %d: %v", tc.reason, indexed, log.index, err)
				}
			}
		})
	}
}

package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// digest takes the stream of etcd's Snapshot call as it passes by, and compares what etcd says at
// its end: the last 32 bytes are the sha256 of all before. They follow a database of whole disk
// sectors, by which etcd itself knows that they are there.
type digest struct {
	sha  hash.Hash // of all but tail
	tail []byte    // the last bytes, at most sha256.Size
	size int64
}

// sector is the unit by which etcd knows a trailer: size % 512 == 32 (hasChecksum of etcdutl).
const sector = 512

func newDigest() *digest { return &digest{sha: sha256.New()} }

func (d *digest) Write(p []byte) (int, error) {
	d.size += int64(len(p))
	written := len(p)
	if len(p) >= sha256.Size {
		d.sha.Write(d.tail)
		d.sha.Write(p[:len(p)-sha256.Size])
		d.tail = append(d.tail[:0], p[len(p)-sha256.Size:]...)
		return written, nil
	}
	d.tail = append(d.tail, p...)
	if over := len(d.tail) - sha256.Size; over > 0 {
		d.sha.Write(d.tail[:over])
		d.tail = append(d.tail[:0], d.tail[over:]...)
	}
	return written, nil
}

// trailer is the damage of the trailer, or empty.
func (d *digest) trailer() string {
	switch {
	case d.size == 0:
		return "the stream is empty"
	case d.size%sector != sha256.Size:
		return "the stream does not end with etcd's sha256: it was cut off"
	case !bytes.Equal(d.sha.Sum(nil), d.tail):
		return "etcd's sha256 at the end of the stream is of other data"
	}
	return ""
}

// sum is the sha256 of the whole stream, in hexadecimal digits. Nothing can be written after it.
func (d *digest) sum() string {
	d.sha.Write(d.tail)
	d.tail = nil
	return hex.EncodeToString(d.sha.Sum(nil))
}

// tally counts and hashes what is stored.
type tally struct {
	sha  hash.Hash
	size int64
}

func newTally() *tally { return &tally{sha: sha256.New()} }

func (t *tally) Write(p []byte) (int, error) {
	t.size += int64(len(p))
	return t.sha.Write(p)
}

func (t *tally) sum() string { return hex.EncodeToString(t.sha.Sum(nil)) }

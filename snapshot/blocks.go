package snapshot

import (
	"bufio"
	"os"
)

// block is how much of a file is read or written at once. A system that keeps files in memory by
// large pages is several times as fast with it as with the 32 KiB of io.Copy.
const block = 1 << 20

// stretch is how much of a file the disk is told to write at once. It is at most two of them behind.
const stretch = 8 << 20

// blocks writes a file that is fsynced at its end, and has the disk write what is there meanwhile.
// Otherwise a whole database is left to that fsync, and whatever else waits for the same disk, as a
// member does at each write, waits for all of it.
type blocks struct{ *bufio.Writer }

func newBlocks(f *os.File) blocks { return blocks{bufio.NewWriterSize(&paced{file: f}, block)} }

// paced passes on what is written, and waits where the disk is too far behind.
type paced struct {
	file *os.File
	size int64 // that is written
	told int64 // that the disk was told to write
}

func (p *paced) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	p.size += int64(n)
	if err == nil && p.size-p.told >= stretch {
		err = toDisk(p.file, max(p.told-stretch, 0), p.told, p.size)
		p.told = p.size
	}
	return n, err
}

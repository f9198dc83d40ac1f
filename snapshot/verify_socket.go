package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
)

// longestSocket is what the path of a socket may have, in bytes, on every system.
const longestSocket = 103

// socket is a path by which this process reaches the etcd that runs in a directory.
type socket struct {
	path string
	dir  *os.File // nil: the path needs none
}

// openSocket is the socket within a directory, or where its path is too long, one by the open
// directory.
func openSocket(dir string) (*socket, error) {
	path := filepath.Join(dir, clientSocket)
	if len(path) <= longestSocket {
		return &socket{path: path}, nil
	}
	open, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	short := fmt.Sprintf("/proc/self/fd/%d", open.Fd())
	if _, err := os.Stat(short); err != nil {
		_ = open.Close() // it was only read
		return nil, fmt.Errorf("%s is too long for the path of a socket: give a scratch directory with a shorter name", path)
	}
	return &socket{path: filepath.Join(short, clientSocket), dir: open}, nil
}

func (s *socket) close() {
	if s.dir != nil {
		_ = s.dir.Close() // it was only read
	}
}

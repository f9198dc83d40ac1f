package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"runtime"
	"time"
)

// imageSpec is a container image to be written as an archive that docker load and ctr images import
// both read. Its ID depends on its contents alone, so building it again gives the same image.
type imageSpec struct {
	Ref        string
	Base       string      // a tar file that is the first layer, or none
	Files      []imageFile // the last layer, or none
	Env        []string
	Entrypoint []string
	Cmd        []string
	WorkingDir string
	StopSignal string
}

// imageFile is a file, a symbolic link or a directory of the image's last layer.
type imageFile struct {
	Path   string
	Source string // the file to copy
	Link   string // or the target of a symbolic link
	Mode   int64  // or, with neither, the mode of a directory
}

// program is a file that the image can run.
func program(source, at string) imageFile {
	return imageFile{Path: at, Source: source}
}

// writeTo writes the archive. Directory dir is used for the work.
func (s imageSpec) writeTo(w io.Writer, dir string) error {
	var layers []string
	if s.Base != "" {
		layers = append(layers, s.Base)
	}
	if len(s.Files) > 0 {
		layer, err := os.CreateTemp(dir, "layer-")
		if err != nil {
			return fmt.Errorf("write image %s: %w", s.Ref, err)
		}
		defer func() { _ = os.Remove(layer.Name()) }() // only a leftover of the work
		err = s.writeLayer(layer)
		if err := errors.Join(err, layer.Close()); err != nil {
			return fmt.Errorf("write the layer of image %s: %w", s.Ref, err)
		}
		layers = append(layers, layer.Name())
	}
	if err := s.writeArchive(w, layers); err != nil {
		return fmt.Errorf("write image %s: %w", s.Ref, err)
	}
	return nil
}

// pipeTo hands the archive to a command that reads an image from its standard input.
func (s imageSpec) pipeTo(cmd *exec.Cmd, dir string) error {
	reader, writer := io.Pipe()
	cmd.Stdin = reader
	var writeErr error
	written := make(chan struct{})
	go func() {
		defer close(written)
		writeErr = s.writeTo(writer, dir)
		_ = writer.CloseWithError(writeErr) // never fails
	}()
	_, err := output(cmd)
	_ = reader.Close() // never fails; lets the writer go when the command has read enough
	<-written
	if writeErr != nil && !errors.Is(writeErr, io.ErrClosedPipe) {
		return writeErr
	}
	if err != nil {
		return fmt.Errorf("load image %s: %w", s.Ref, err)
	}
	return nil
}

func (s imageSpec) writeLayer(w io.Writer) error {
	archive := tar.NewWriter(w)
	made := map[string]bool{".": true}
	for _, f := range s.Files {
		for _, dir := range parents(f.Path) {
			if made[dir] {
				continue
			}
			made[dir] = true
			if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
				return err
			}
		}
		if err := f.write(archive); err != nil {
			return err
		}
	}
	return archive.Close()
}

func (f imageFile) write(archive *tar.Writer) error {
	switch {
	case f.Link != "":
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: f.Path, Linkname: f.Link, Mode: 0o777})
	case f.Source == "":
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: f.Path + "/", Mode: f.Mode})
	}
	return copyIn(archive, f.Source, &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: 0o755})
}

func (s imageSpec) writeArchive(w io.Writer, layers []string) error {
	type config struct {
		Entrypoint []string `json:",omitempty"`
		Cmd        []string `json:",omitempty"`
		Env        []string
		WorkingDir string `json:",omitempty"`
		StopSignal string `json:",omitempty"`
	}
	type rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	diffIDs := make([]string, 0, len(layers))
	names := make([]string, 0, len(layers))
	for _, layer := range layers {
		sum, err := digest(layer)
		if err != nil {
			return err
		}
		diffIDs = append(diffIDs, "sha256:"+sum)
		names = append(names, sum+".tar")
	}
	rawConfig, err := json.Marshal(struct {
		Created      time.Time `json:"created"`
		Architecture string    `json:"architecture"`
		OS           string    `json:"os"`
		Config       config    `json:"config"`
		RootFS       rootFS    `json:"rootfs"`
	}{
		Created:      time.Unix(0, 0).UTC(),
		Architecture: runtime.GOARCH,
		OS:           "linux",
		Config: config{
			Entrypoint: s.Entrypoint,
			Cmd:        s.Cmd,
			Env:        append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, s.Env...),
			WorkingDir: s.WorkingDir,
			StopSignal: s.StopSignal,
		},
		RootFS: rootFS{Type: "layers", DiffIDs: diffIDs},
	})
	if err != nil {
		return err
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(rawConfig))
	rawManifest, err := json.Marshal([]struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{{Config: configName, RepoTags: []string{s.Ref}, Layers: names}})
	if err != nil {
		return err
	}

	archive := tar.NewWriter(w)
	for _, f := range []struct {
		name    string
		content []byte
	}{{"manifest.json", rawManifest}, {configName, rawConfig}} {
		if err := archive.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.content))}); err != nil {
			return err
		}
		if _, err := io.Copy(archive, bytes.NewReader(f.content)); err != nil {
			return err
		}
	}
	for i, layer := range layers {
		if err := copyIn(archive, layer, &tar.Header{Typeflag: tar.TypeReg, Name: names[i], Mode: 0o644}); err != nil {
			return err
		}
	}
	return archive.Close()
}

// copyIn adds the contents of a file under a header that lacks only the size.
func copyIn(archive *tar.Writer, file string, header *tar.Header) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}

func digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read from
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// parents are the directories above a path, outermost first.
func parents(name string) []string {
	dir := path.Dir(name)
	if dir == "." || dir == "/" {
		return nil
	}
	return append(parents(dir), dir)
}

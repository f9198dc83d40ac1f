package node

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// kindFiles is what kind's own module says about its node images.
type kindFiles struct {
	base            string // the directory of files that go into every node
	storageManifest string
	storageImages   []string
	sandboxImage    string
}

var sandboxSetting = regexp.MustCompile(`(?m)^\s*sandbox_image = "([^"]+)"`)

// kindSources reads kind's module, so that a node built here is set up like the ones that kind
// publishes.
func kindSources(ctx context.Context) (kindFiles, error) {
	m := module{"sigs.k8s.io/kind", kindVersion}
	out, err := goTool(ctx, os.TempDir(), "mod", "download", "-json", m.String())
	if err != nil {
		return kindFiles{}, fmt.Errorf("download %s: %w", m, err)
	}
	var download struct{ Dir string }
	if err := json.Unmarshal(out, &download); err != nil {
		return kindFiles{}, fmt.Errorf("download %s: %w", m, err)
	}
	files := kindFiles{base: filepath.Join(download.Dir, "images", "base", "files")}
	constants, err := stringConstants(filepath.Join(download.Dir, "pkg", "build", "nodeimage", "const_storage.go"))
	if err != nil {
		return kindFiles{}, fmt.Errorf("read kind's storage manifest: %w", err)
	}
	files.storageManifest = constants["defaultStorageManifest"]
	files.storageImages = []string{constants["storageProvisionerImage"], constants["storageHelperImage"]}
	config, err := os.ReadFile(filepath.Join(files.base, "etc", "containerd", "config.toml"))
	if err != nil {
		return kindFiles{}, fmt.Errorf("read kind's containerd configuration: %w", err)
	}
	match := sandboxSetting.FindSubmatch(config)
	if files.storageManifest == "" || match == nil {
		return kindFiles{}, fmt.Errorf("%s is not laid out as expected: no storage manifest or sandbox image", m)
	}
	files.sandboxImage = string(match[1])
	return files, nil
}

// install copies kind's files into a node and writes what kind's image build would write for this
// version of Kubernetes.
func (k kindFiles) install(root, kubernetes string) error {
	err := filepath.WalkDir(k.base, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(k.base, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		// A module zip does not keep modes: programs live where kind's Dockerfile says so.
		mode := fs.FileMode(0o644)
		if dir := filepath.Dir(name); dir == "usr/local/bin" || dir == "kind/bin" {
			mode = 0o755
		}
		return writeNew(filepath.Join(root, name), content, mode)
	})
	if err != nil {
		return fmt.Errorf("install kind's files: %w", err)
	}
	for name, content := range map[string]string{
		"kind/version":                        "v" + kubernetes,
		"kind/manifests/default-storage.yaml": k.storageManifest,
	} {
		if err := writeNew(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("install kind's files: %w", err)
		}
	}
	return nil
}

// stringConstants evaluates the string constants of a Go file that needs no other.
func stringConstants(file string) (map[string]string, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	checker := types.Config{Error: func(error) {}} // what is missing beside the constants is no matter
	pkg, _ := checker.Check(parsed.Name.Name, fset, []*ast.File{parsed}, nil)
	values := map[string]string{}
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if ok && c.Val().Kind() == constant.String {
			values[name] = strings.TrimPrefix(constant.StringVal(c.Val()), "\n")
		}
	}
	return values, nil
}

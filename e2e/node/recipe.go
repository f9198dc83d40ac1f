package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// recipe says how to build programs from published Go modules: the same module graph, and so the
// same sources, wherever it is built. Go's checksum database vouches for what is downloaded.
type recipe struct {
	Name     string
	Requires []module
	// StagingOf names the requirement whose go.mod replaces its staging modules with local folders,
	// which a module zip does not hold. They are required at StagingVersion instead.
	StagingOf      string
	StagingVersion string
	// AtLeast are the least versions of modules that StagingOf requires too. What two builds
	// require at one version is compiled once for both.
	AtLeast     []module `json:",omitempty"`
	Packages    []string
	LinkerFlags string
	// Sources are files to put into the module, by path: programs of our own.
	Sources map[string]string `json:",omitempty"`
	// Renames maps the name that Go gives a program to the one it is known by.
	Renames map[string]string
}

type module struct{ Path, Version string }

func (m module) String() string { return m.Path + "@" + m.Version }

// build returns the directory that holds the programs of the recipe.
func (r recipe) build(ctx context.Context) (string, error) {
	name := fmt.Sprintf("%s-%s-%s", r.Name, runtime.GOARCH, fingerprint(r))
	return cached(ctx, name, func(dir string) error {
		say("building %s: %s", r.Name, strings.Join(r.programs(), ", "))
		source := filepath.Join(dir, "source")
		if err := os.Mkdir(source, 0o755); err != nil {
			return fmt.Errorf("create the module of %s: %w", r.Name, err)
		}
		mod, err := r.goMod(ctx, source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(source, "go.mod"), mod, 0o644); err != nil {
			return fmt.Errorf("write go.mod of %s: %w", r.Name, err)
		}
		for name, content := range r.Sources {
			if err := writeNew(filepath.Join(source, name), []byte(content), 0o644); err != nil {
				return fmt.Errorf("write the source of %s: %w", r.Name, err)
			}
		}
		args := append([]string{"build", "-mod=mod", "-trimpath", "-buildvcs=false",
			"-ldflags", "-s -w " + r.LinkerFlags, "-o", dir + "/"}, r.Packages...)
		if _, err := goTool(ctx, source, args...); err != nil {
			return fmt.Errorf("build %s: %w", r.Name, err)
		}
		for from, to := range r.Renames {
			if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
				return fmt.Errorf("name the programs of %s: %w", r.Name, err)
			}
		}
		say("built %s", r.Name)
		return nil
	})
}

// goMod is the go.mod of the module that the programs are built in.
func (r recipe) goMod(ctx context.Context, dir string) ([]byte, error) {
	if r.StagingOf == "" {
		return moduleFile(r.Requires, ""), nil
	}
	for _, m := range r.Requires {
		if m.Path != r.StagingOf {
			continue
		}
		upstream, err := m.modJSON(ctx, dir)
		if err != nil {
			return nil, err
		}
		staging, required, godebug, err := inherited(upstream)
		if err != nil {
			return nil, fmt.Errorf("read go.mod of %s: %w", m, err)
		}
		return moduleFile(r.requirements(staging, required), godebug), nil
	}
	return nil, fmt.Errorf("recipe %s does not require %s", r.Name, r.StagingOf)
}

// requirements are those of the module that the programs are built in, where StagingOf stages and
// requires these.
func (r recipe) requirements(staging, required []string) []module {
	requires := slices.Clone(r.Requires)
	for _, p := range required {
		if slices.Contains(staging, p) {
			requires = append(requires, module{Path: p, Version: r.StagingVersion})
		} else if n := slices.IndexFunc(r.AtLeast, func(m module) bool { return m.Path == p }); n >= 0 {
			requires = append(requires, r.AtLeast[n])
		}
	}
	return requires
}

func (r recipe) programs() []string {
	names := make([]string, 0, len(r.Packages))
	for _, pkg := range r.Packages {
		name := programName(pkg)
		if to, ok := r.Renames[name]; ok {
			name = to
		}
		names = append(names, name)
	}
	return names
}

// modJSON is the go.mod of the module in the form of go mod edit -json.
func (m module) modJSON(ctx context.Context, dir string) ([]byte, error) {
	out, err := goTool(ctx, dir, "mod", "download", "-json", m.String())
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", m, err)
	}
	var download struct{ GoMod string }
	if err := json.Unmarshal(out, &download); err != nil {
		return nil, fmt.Errorf("download %s: %w", m, err)
	}
	return goTool(ctx, dir, "mod", "edit", "-json", download.GoMod)
}

// moduleFile writes a go.mod with these requirements: each is the least version. The programs
// behave as those of the Go version in godebug do; empty is the version of the module.
func moduleFile(requires []module, godebug string) []byte {
	const goVersion = "1.26"
	var b bytes.Buffer
	fmt.Fprintf(&b, "module quorate.dev/e2e/node/build\n\ngo %s.0\n", goVersion)
	if godebug != "" && godebug != "go"+goVersion {
		fmt.Fprintf(&b, "\ngodebug default=%s\n", godebug)
	}
	if len(requires) > 0 {
		b.WriteString("\nrequire (\n")
		for _, m := range requires {
			fmt.Fprintf(&b, "\t%s %s\n", m.Path, m.Version)
		}
		b.WriteString(")\n")
	}
	return b.Bytes()
}

// inherited is what a go.mod says that a module which requires it has to know: the modules that it
// replaces with a folder, those that it requires, and the default of GODEBUG, which holds for the
// main module alone. All are in the order of the file.
func inherited(modJSON []byte) (staging, required []string, godebug string, err error) {
	var mod struct {
		Require []module
		Replace []struct{ Old, New module }
		Godebug []struct{ Key, Value string }
	}
	if err := json.Unmarshal(modJSON, &mod); err != nil {
		return nil, nil, "", err
	}
	for _, m := range mod.Require {
		required = append(required, m.Path)
	}
	for _, r := range mod.Replace {
		if strings.HasPrefix(r.New.Path, "./") {
			staging = append(staging, r.Old.Path)
		}
	}
	for _, setting := range mod.Godebug {
		if setting.Key == "default" {
			godebug = setting.Value
		}
	}
	return staging, required, godebug, nil
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// programName is the name that go build gives the program of a package.
func programName(pkg string) string {
	name := path.Base(pkg)
	if majorVersion.MatchString(name) {
		name = path.Base(path.Dir(pkg))
	}
	return name
}

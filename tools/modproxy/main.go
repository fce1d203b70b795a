package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const mainModule = "github.com/agent-troupe/troupe"

// below are the modules of a release besides the main one, by their directories.
func below() []string { return []string{"contrib/nats", "contrib/otel", "contrib/sqlite"} }

func main() {
	log.SetFlags(0)
	log.SetPrefix("modproxy: ")
	root := flag.String("root", "..", "the checkout")
	out := flag.String("out", "", "where the proxy goes")
	edit := flag.Bool("edit", false, "write the go.mod files of the release into the checkout")
	version := flag.String("version", "", "of all modules, such as v0.1.0")
	flag.Parse()
	var err error
	switch {
	case *version == "" || *edit == (*out != ""):
		err = errors.New("give -version, and one of -out and -edit")
	case *edit:
		err = editAll(*root, *version)
	default:
		err = proxy(*root, *out, *version)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// released is a go.mod as it is in a release: other modules of this repository are needed by version.
func released(name string, raw []byte, version string) ([]byte, error) {
	f, err := modfile.Parse(name, raw, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range f.Require {
		if r.Mod.Path == mainModule || strings.HasPrefix(r.Mod.Path, mainModule+"/") {
			if err := f.AddRequire(r.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range f.Replace {
		if r.Old.Path != mainModule && !strings.HasPrefix(r.Old.Path, mainModule+"/") {
			return nil, fmt.Errorf("%s replaces %s, which a release cannot", name, r.Old.Path)
		}
		if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	f.Cleanup()
	return f.Format()
}

func editAll(root, version string) error {
	for _, dir := range below() {
		name := filepath.Join(root, dir, "go.mod")
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text, err := released(name, raw, version)
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, text, 0o644); err != nil { //nolint:gosec // it is a source file
			return err
		}
	}
	return nil
}

// proxy writes the three files of each module, as GOPROXY's protocol names them.
func proxy(root, out, version string) error {
	for _, dir := range append([]string{""}, below()...) {
		m := module.Version{Path: strings.TrimSuffix(mainModule+"/"+dir, "/"), Version: version}
		if err := one(filepath.Join(root, dir), filepath.Join(out, filepath.FromSlash(m.Path), "@v"), m); err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	return nil
}

func one(dir, out string, m module.Version) (err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	mod, err := released(filepath.Join(dir, "go.mod"), raw, m.Version)
	if err != nil {
		return err
	}
	files, err := filesOf(dir, mod)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list": m.Version + "\n", m.Version + ".mod": string(mod), m.Version + ".info": fmt.Sprintf("{\"Version\":%q}\n", m.Version),
	} {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil { //nolint:gosec // everyone may read it
			return err
		}
	}
	to, err := os.Create(filepath.Join(out, m.Version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(zip.Create(to, m, files), to.Close())
}

// filesOf lists the files of a module that git knows, without those of modules below it.
func filesOf(dir string, mod []byte) (files []zip.File, err error) {
	listed, err := exec.Command("git", "-C", dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output() //nolint:noctx // it ends
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", dir, err)
	}
	var nested []string
	names := strings.Split(strings.TrimRight(string(listed), "\x00"), "\x00")
	for _, name := range names {
		if at, ok := strings.CutSuffix(name, "/go.mod"); ok && !strings.Contains(name, "testdata/") {
			nested = append(nested, at+"/")
		}
	}
	for _, name := range names {
		f := source{dir: dir, name: name}
		if name == "go.mod" {
			f.content = string(mod)
		}
		info, err := f.Lstat()
		if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // removed, or a link
		}
		if err != nil {
			return nil, err
		}
		below := false
		for _, at := range nested {
			below = below || strings.HasPrefix(name, at)
		}
		if !below {
			files = append(files, f)
		}
	}
	return files, nil
}

// source implements [zip.File].
type source struct{ dir, name, content string }

func (s source) Path() string                { return s.name }
func (s source) Lstat() (os.FileInfo, error) { return os.Lstat(filepath.Join(s.dir, s.name)) }

func (s source) Open() (io.ReadCloser, error) {
	if s.content != "" {
		return io.NopCloser(strings.NewReader(s.content)), nil
	}
	return os.Open(filepath.Join(s.dir, s.name))
}

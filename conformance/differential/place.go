package differential

import (
	_ "embed" // the server
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Place is the directory that stands for /w, with one case in it.
type Place struct {
	Root, Proj, Home, Tmp string

	made  int // files
	times map[string]time.Time
}

// mcpServer is the server of the cases about MCP.
//
//go:embed testdata/mcp-server.py
var mcpServer []byte

// newPlace makes the directories and files of a case.
func newPlace(root string, c *Case) (*Place, error) {
	p := &Place{Root: root, Proj: filepath.Join(root, "proj"), Home: filepath.Join(root, "home"), Tmp: filepath.Join(root, "tmp")}
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // as in the recordings, whose modes are compared
		return nil, err
	}
	for _, d := range []string{p.Proj, p.Home, p.Tmp, filepath.Join(root, "other")} {
		if err := os.MkdirAll(d, 0o755); err != nil { //nolint:gosec // as above
			return nil, err
		}
	}
	for i := range c.Files {
		if err := p.add(&c.Files[i]); err != nil {
			return nil, fmt.Errorf("make %s: %w", c.Files[i].Path, err)
		}
	}
	if len(c.servers()) > 0 {
		if err := os.WriteFile(filepath.Join(root, "mcp-server.py"), mcpServer, 0o600); err != nil {
			return nil, err
		}
	}
	for _, s := range c.Setup {
		cmd := exec.Command("/bin/bash", "-c", s)
		cmd.Dir = p.Proj
		cmd.Env = append(os.Environ(), "HOME="+p.Home)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("setup %q: %w: %s", s, err, out)
		}
	}
	p.times = map[string]time.Time{}
	_ = filepath.WalkDir(p.Proj, func(path string, d fs.DirEntry, err error) error { // what cannot be read has no time
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // see above
		}
		if info, err := d.Info(); err == nil {
			p.times[strings.TrimPrefix(path, p.Proj+"/")] = info.ModTime()
		}
		return nil
	})
	return p, nil
}

func (p *Place) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Proj, name)
}

func (p *Place) add(f *File) error {
	at := p.path(f.Path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	mode := uint64(0o644)
	if f.Dir {
		mode = 0o755
	}
	if f.Mode != "" {
		var err error
		if mode, err = strconv.ParseUint(f.Mode, 8, 32); err != nil {
			return err
		}
	}
	var content []byte
	switch {
	case f.Dir:
		if err := os.MkdirAll(at, 0o755); err != nil { //nolint:gosec // as above
			return err
		}
		return os.Chmod(at, fs.FileMode(mode))
	case f.Symlink != "":
		return os.Symlink(f.Symlink, at)
	case f.FIFO:
		return exec.Command("mkfifo", at).Run()
	case f.Base64 != "":
		var err error
		if content, err = base64.StdEncoding.DecodeString(f.Base64); err != nil {
			return err
		}
	case f.Gen != nil:
		for i := range f.Gen.Count {
			content = append(content, strings.ReplaceAll(f.Gen.Line, "%d", strconv.Itoa(i+1))...)
		}
	case f.Text != nil:
		content = []byte(*f.Text)
	}
	if err := os.WriteFile(at, content, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(at, fs.FileMode(mode)); err != nil {
		return err
	}
	if f.MTime != 0 {
		return os.Chtimes(at, time.Unix(f.MTime, 0), time.Unix(f.MTime, 0))
	}
	// Each file is newer than the one before, also where the clock of the disk is coarse.
	p.made++
	next := time.Now().Add(time.Duration(p.made)*10*time.Millisecond - time.Minute)
	return os.Chtimes(at, next, next)
}

// files are those of the workspace, in the form of recordings.
func (p *Place) files() (map[string]any, error) {
	all := map[string]any{}
	err := filepath.WalkDir(p.Proj, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == ".git" && d.IsDir() {
			return fs.SkipDir
		}
		if err != nil {
			return nil //nolint:nilerr // a directory without permission has no files to look at
		}
		rel, err := filepath.Rel(p.Proj, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if inside, err := os.ReadDir(path); err == nil && len(inside) == 0 && rel != "." {
				all[rel] = map[string]any{"dir": true}
			}
			return nil
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			all[rel] = map[string]any{"symlink": to}
			return err
		case !info.Mode().IsRegular():
			return nil
		}
		one := map[string]any{"mode": fmt.Sprintf("%04o", info.Mode().Perm())}
		content, _ := os.ReadFile(path) //nolint:gosec // nothing else runs here by now; a file without permission is compared by its mode
		if utf8.Valid(content) {
			one["text"] = string(content)
		} else {
			one["base64"] = base64.StdEncoding.EncodeToString(content)
		}
		all[rel] = one
		return nil
	})
	return all, err
}

// changes are what became of the files.
func changes(before, after map[string]any) map[string]any {
	all := map[string]any{}
	for name, now := range after {
		was, there := before[name]
		if a, _ := json.Marshal(was); there { // of strings
			if b, _ := json.Marshal(now); string(a) == string(b) {
				continue
			}
		}
		all[name] = now
	}
	for name := range before {
		if _, there := after[name]; !there {
			all[name] = "removed"
		}
	}
	return all
}

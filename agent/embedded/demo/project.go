package demo

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// prefix is how the names of the demonstration's directories begin.
const prefix = "troupe-demo-"

//go:embed project
var project embed.FS

// Project writes the files of the demonstration's project into dir: a shell script that is
// wrong, its cases, and the check that runs them. Files that are there stay as they are.
func Project(dir string) error {
	files, err := project.ReadDir("project")
	if err != nil {
		return err
	}
	for _, f := range files {
		content, err := project.ReadFile("project/" + f.Name())
		if err != nil {
			return err
		}
		to, err := os.OpenFile(filepath.Join(dir, f.Name()), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("write the demonstration's project: %w", err)
		}
		_, err = to.Write(content)
		if closed := to.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return fmt.Errorf("write the demonstration's project: %w", err)
		}
	}
	return nil
}

// Home returns the directory in which the stored session with the id works, or "" if there
// is no such session, or its directory is gone. getenv reads the session's environment.
func Home(getenv func(string) string, id string) string {
	if id == "" || strings.ContainsAny(id, `*?[\/`) {
		return ""
	}
	files, _ := filepath.Glob(filepath.Join(storedIn(getenv), "projects", "*", id+".jsonl")) // the pattern is one
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			var l struct {
				Cwd string `json:"cwd"`
			}
			if protocol.Unmarshal(line, &l) != nil || l.Cwd == "" {
				continue
			}
			if st, err := os.Stat(l.Cwd); err == nil && st.IsDir() && strings.HasPrefix(filepath.Base(l.Cwd), prefix) {
				return l.Cwd
			}
			break
		}
	}
	return ""
}

// storedIn is where package embedded stores sessions if its Config.Dir is "".
func storedIn(getenv func(string) string) string {
	if dir := getenv("TROUPE_EMBEDDED_DIR"); dir != "" {
		return dir
	}
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "troupe")
	}
	return filepath.Join(getenv("HOME"), ".local", "state", "troupe")
}

// resumed is the session that the arguments resume; "": none.
func resumed(args []string) string {
	for _, a := range args {
		if id, ok := strings.CutPrefix(a, "--resume="); ok {
			return id
		}
	}
	return ""
}

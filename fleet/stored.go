package fleet

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/transcript"
)

// reconsider begins a new session in the workspace where an attempt would resume one that the
// agent had not stored when the host died: agents end with an error then, and a start is lost.
func (r *runner) reconsider(a *attempt) {
	if a.mode != modeResume || !a.with.orphan || !lost(a.opts, r.rt.StateDir(), a.session) {
		return
	}
	a.mode, a.session, a.turns = modeAgain, "", 0
	a.Text, a.Structured, a.ToolCalls = "", nil, 0
}

// lost reports whether a session is surely not stored. Where it cannot be looked for, the agent
// finds out itself.
func lost(o *sdk.Options, state, id string) bool {
	var vendor transcript.Vendor
	switch name := backendName(o); {
	case !transcript.IsID(id), o.Spawner != nil, o.SessionStore != nil, inMemory(o):
		return false
	case name == claude.Name:
		vendor = transcript.Claude
	case name == qoder.Name && o.ExperimentalCloudAgent == nil:
		vendor = transcript.Qoder
	default:
		return false
	}
	root, _ := transcript.Root(vendor, variables(o))
	if root == "" {
		return false
	}
	dirs := []string{root}
	if state != "" {
		dirs = append(dirs, below(filepath.Join(state, "config"))...)
	}
	for _, dir := range dirs {
		for _, project := range below(filepath.Join(dir, "projects")) {
			said, err := saysSomething(filepath.Join(project, id+".jsonl"))
			if said || err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false
			}
		}
	}
	return true
}

// below are the paths of what is in a directory; nothing if it cannot be read.
func below(dir string) []string {
	entries, _ := os.ReadDir(dir)
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = filepath.Join(dir, e.Name())
	}
	return all
}

// saysSomething reports whether a transcript has a message: agents begin the file with other
// lines, and find no conversation in it then.
func saysSomething(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	const most = 4 << 20             // what comes before the first message is short
	text, err := io.ReadAll(io.LimitReader(f, most))
	return bytes.Contains(text, []byte(`"type":"user"`)) || bytes.Contains(text, []byte(`"type":"assistant"`)) || len(text) == most, err
}

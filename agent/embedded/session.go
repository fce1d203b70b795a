package embedded

import (
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

// workdir is the directory with its links followed, as an agent that is a process sees its
// own: all names of a directory have the same sessions.
func workdir(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if at, err := filepath.EvalSymlinks(dir); err == nil {
		dir = at
	}
	return dir
}

// lastOf is the value of the last argument with the prefix.
func lastOf(args []string, prefix string) (value string) {
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, prefix); ok {
			value = v
		}
	}
	return value
}

// ReadSession implements [agent.Archive].
func (p *program) ReadSession(l agent.Launch, id string) ([]byte, error) {
	return load(folder(p.cfg.Dir, l.Getenv), fileOf(workdir(l.Dir), id), p.seams.Disk)
}

// fileOf is the path of a session's file, below the directory of sessions.
func fileOf(dir, id string) string {
	return path.Join("projects", transcript.FolderName(transcript.Claude, dir)) + "/" + id + ".jsonl"
}

// thinkingOf is the budget of thinking that the arguments give.
func thinkingOf(args []string) int {
	if lastOf(args, "--thinking=") == session.ThinkingDisabled {
		return -1
	}
	n, err := strconv.Atoi(lastOf(args, "--max-thinking-tokens="))
	if err != nil {
		return 0
	}
	return n
}

// retriesOf is how often a request is repeated: as the session's environment says, or the
// configuration.
func retriesOf(configured int, env string) int {
	if n, err := strconv.Atoi(env); err == nil && n >= 0 {
		return n
	}
	return max(configured, 0)
}

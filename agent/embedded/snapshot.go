package embedded

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// snapshotLimit is how long the user's ~/.bashrc may take.
const snapshotLimit = 10 * time.Second

// rc reads ~/.bashrc, and prints the functions, aliases and exported variables that it has
// made, as a script. Its own PATH is not kept, as observed on Claude Code 2.1.329.
const rc = `declare -A __troupe
for __n in $(compgen -e); do __troupe[$__n]=${!__n}; done
exec 3>&1 </dev/null >/dev/null 2>&1
source "$1"
exec >&3 3>&-
for __n in $(compgen -e); do
  case $__n in PATH|PWD|OLDPWD|SHLVL|_|__n|__troupe) continue;; esac
  if [ "${__troupe[$__n]+x}" != x ] || [ "${__troupe[$__n]}" != "${!__n}" ]; then printf 'export %s=%q\n' "$__n" "${!__n}"; fi
done
echo 'shopt -s expand_aliases'
declare -f
alias -p`

// snapshot is the path of a script with what ~/.bashrc has made; "": there is nothing of it.
// It is made once, for the first command.
func (h *hands) snapshot(ctx context.Context) string {
	h = h.session()
	h.mu.Lock()
	made, path := h.snapped, h.snap
	h.mu.Unlock()
	if made {
		return path
	}
	path, err := h.takeSnapshot(ctx)
	if err != nil {
		path = "" // a command works without it, as where there is no such file
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.snapped && ctx.Err() == nil {
		h.snapped, h.snap = true, path
	}
	return h.snap
}

func (h *hands) takeSnapshot(ctx context.Context) (string, error) {
	if h.disk != nil {
		return "", nil // a simulation does not depend on the home of who runs it
	}
	confined := h.confined()
	if confined != nil && confined.spawner != nil {
		return "", nil // the file is not where commands run
	}
	file := filepath.Join(h.home(), ".bashrc")
	info, err := os.Stat(file)
	if h.home() == "" || err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	dir, err := h.keep("")
	if err != nil {
		return "", err
	}
	var text string
	if confined != nil || h.startups == nil { // what it may read is this session's
		text, _ = h.readRC(ctx, file, h.env)
	} else { // without what a job says to each of its tasks
		env := slices.DeleteFunc(slices.Clone(h.env), func(kv string) bool { return strings.HasPrefix(kv, "TROUPE_") })
		want := startup{file: file, at: info.ModTime(), size: info.Size(), env: env}
		text = h.startups.take(ctx, h.seams.Exec, want, func() (string, bool) { return h.readRC(ctx, file, env) })
	}
	if text == "" {
		return "", nil
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if name, is := strings.CutPrefix(line, "export "); is {
			if name, _, _ = strings.Cut(name, "="); h.private(name) {
				continue
			}
		}
		b.WriteString(line)
	}
	path := filepath.Join(dir, "snapshot-bash.sh")
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}

// readRC runs the file in the home directory, so that no project has a say in it. It returns "" if
// the file ends the shell, or takes too long. That counts for other sessions, too; that it could not
// be run does not.
func (h *hands) readRC(ctx context.Context, file string, env []string) (text string, counts bool) {
	c, err := h.start(ctx, session.Command{Path: "/bin/bash", Args: []string{"-c", rc, "/bin/bash", file}, Dir: h.home(), Env: env})
	if err != nil {
		return "", false
	}
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer h.seams.Clock.AfterFunc(snapshotLimit, func() { cancel(errTimedOut) }).Stop()
	err = c.wait(limited)
	if _, ended := c.end(); err == nil {
		err = ended
	}
	if text = string(c.out.bytes()); err != nil || !strings.Contains(text, "shopt -s expand_aliases\n") {
		return "", ctx.Err() == nil
	}
	return text, true
}

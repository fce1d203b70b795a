package build

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
)

// Command fills in how the program itself is found and run.
func Command(l *dialect.Launch, o *dialect.Input, t dialect.Traits, p *Problems) {
	l.Path, l.Names, l.Dir, l.CleanEnv = o.PathToExecutable, t.ExecutableNames, o.Cwd, o.CleanEnv
	if l.Path == "" && t.ExecutableEnv != "" {
		l.Path, _ = o.LookupHostEnv(t.ExecutableEnv)
	}
	if isScript(l.Path) {
		runtime := cmp.Or(o.Executable, "node")
		l.Interpreter = append([]string{runtime}, o.ExecutableArgs...)
		return
	}
	if o.Executable != "" {
		p.Warn("Executable", l.Path, "the agent's program is not a script, and is run directly", "leave it out")
	}
}

func isScript(path string) bool {
	return slices.Contains([]string{".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx"}, strings.ToLower(filepath.Ext(path)))
}

package command

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/agent-troupe/troupe/dialect/acp"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
)

func versionPage() page {
	return page{text: `Usage: troupe version [flags]

Prints the version of this program, its commit, the Go that built it, and the releases of agents and
their protocols that it was tested with. troupe --version prints the first line.
`, groups: []flagGroup{{"Flags", []flagSpec{jsonFlag(), helpFlag()}}}}
}

func versionCommand(_ context.Context, _ process, c *console, s *settings) int {
	v := currentVersion()
	if s.asJSON {
		return c.printJSON(v)
	}
	return c.print(v.text())
}

// versions is what troupe version says, and its JSON form.
type versions struct {
	Version  string        `json:"version"`
	Commit   string        `json:"commit,omitempty"`   // "": the build does not say
	Time     string        `json:"time,omitempty"`     // of the commit
	Modified bool          `json:"modified,omitempty"` // the checkout had other changes
	Go       string        `json:"go"`
	Platform string        `json:"platform"`
	Agents   []testedAgent `json:"agents"`
}

// testedAgent is an agent that the tests run with.
type testedAgent struct {
	Name     string   `json:"name"`
	Backend  string   `json:"backend"`  // as --agent takes it
	Releases []string `json:"releases"` // the newest first
	Protocol string   `json:"protocol"`
}

// testedAgents are the agents of conformance/agents.txt.
func testedAgents() []testedAgent {
	return []testedAgent{
		{"Claude Code", claude.Name, []string{"2.1.329", "2.1.197"}, "that of Agent SDK 0.3.329"},
		{"Qoder CLI", qoder.Name, []string{"1.1.52"}, "1.4.0"},
		{"Agent Client Protocol", acp.Name, []string{"claude-agent-acp 0.100.0", "SDK 2.4.0", "example agent 0.28.1"}, "1"},
	}
}

func currentVersion() versions {
	v := versions{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Agents: testedAgents()}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = info.Main.Version
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.time":
				v.Time = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return v
}

// line is the first line.
func (v *versions) line() string {
	commit := v.Commit[:min(12, len(v.Commit))]
	if v.Modified {
		commit += " (modified)"
	}
	return strings.Join(strings.Fields(fmt.Sprintf("troupe %s %s %s %s", v.Version, commit, v.Go, v.Platform)), " ") + "\n"
}

func (v *versions) text() string {
	var b strings.Builder
	b.WriteString(v.line())
	if v.Commit != "" {
		fmt.Fprintf(&b, "commit %s of %s\n", v.Commit, v.Time)
	}
	b.WriteString("tested with:\n")
	for _, a := range v.Agents {
		fmt.Fprintf(&b, "  %-22s %s; protocol %s\n", a.Name, strings.Join(a.Releases, ", "), a.Protocol)
	}
	return b.String()
}

// version is the first line of troupe version.
func version() string {
	v := currentVersion()
	return v.line()
}

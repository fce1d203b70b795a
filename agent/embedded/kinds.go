package embedded

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/session"
)

// kind is a kind of sub-agents.
type kind struct {
	name   string
	about  string // tells the model when to use it
	prompt string
	tools  []string // all that it has; nil: all that there are
	not    []string // taken from them
	model  string   // "": the session's
	effort string   // "": the session's
	turns  int      // calls of the model; 0: 500
	window int      // tokens; 0: that of the session, which it cannot exceed
	// background says whether it works in the background if the call does not say so. It does
	// without this field.
	background *bool
	brief      bool // its report says nothing of its use, as observed
}

// generalPurpose is the kind of a call that names none.
const generalPurpose = "general-purpose"

// ownKinds are the kinds that are always there, by name.
func ownKinds() []*kind {
	return []*kind{
		{
			name: "Explore", about: "Searches and reads, changes nothing.", brief: true,
			prompt: "You are an agent that finds out what another agent has asked. Search and read; change nothing, also not with commands. Your last text is your report, and the other agent sees nothing else: name files and lines, quote what matters, and say what you have not found.",
			not:    []string{agentName, "Edit", "NotebookEdit", "Write"},
		},
		{
			name: generalPurpose, about: "Any task, all tools. The default.",
			prompt: "You are an agent that does a task for another agent. Do what is asked, all of it, and no more. Your last text is your report, and the other agent sees nothing else: say what you did, what you checked, and what failed.",
		},
	}
}

// withKinds are kinds with others, which replace those of the same name, in the order of their names.
func withKinds(all, others []*kind) []*kind {
	all = slices.Clone(all)
	for _, k := range others {
		all = append(slices.DeleteFunc(all, func(o *kind) bool { return o.name == k.name }), k)
	}
	slices.SortFunc(all, func(a, b *kind) int { return cmp.Compare(a.name, b.name) })
	return all
}

// definedKind is a kind as Options.Agents defines it.
func definedKind(name string, d *session.AgentDefinition) *kind {
	k := &kind{
		name: name, about: d.Description, prompt: d.Prompt, not: d.DisallowedTools, model: d.Model,
		effort: string(d.Effort), turns: d.MaxTurns.Or(0), window: d.AutoCompactWindow.Or(0),
	}
	if set := d.Tools; !set.IsZero() && !set.IsAll() {
		k.tools = append([]string{}, set.Names()...)
	}
	if background, set := d.Background.Value(); set {
		k.background = &background
	}
	if k.model == "inherit" {
		k.model = ""
	}
	return k
}

// unsupportedKinds are what this agent does not have of the definitions of Options.Agents.
func unsupportedKinds(agents map[string]session.AgentDefinition) (all []error) {
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		d := agents[name]
		field := func(of string) string { return fmt.Sprintf("Agents[%q].%s", name, of) }
		for _, c := range []struct {
			field string
			set   bool
		}{
			{"MCPServers", len(d.MCPServers) > 0}, {"Skills", len(d.Skills) > 0}, {"InitialPrompt", d.InitialPrompt != ""},
			{"PermissionMode", d.PermissionMode != ""}, {"Memory", d.Memory != ""}, {"Isolation", d.Isolation != ""},
			{"OmitClaudeMD", d.OmitClaudeMD.Or(false)}, {"Observer", d.Observer != ""}, {"ObserverMessage", d.ObserverMessage != ""},
			{"CriticalSystemReminder", d.CriticalSystemReminder != ""},
		} {
			if c.set {
				all = append(all, problem(field(c.field), "is not supported by this agent yet", "leave it out"))
			}
		}
		for _, n := range slices.Concat(d.Tools.Names(), d.DisallowedTools) {
			if !strings.HasPrefix(n, "mcp__") && !slices.Contains(toolNames(), n) && toolOf(n) != agentName {
				all = append(all, problem(field("Tools"), fmt.Sprintf("names %q, which this agent does not have", n), "its tools are "+strings.Join(toolNames(), ", ")))
			}
		}
	}
	return all
}

// isAlias reports whether this is a short name of a model that Claude Code knows.
func isAlias(model string) bool {
	return slices.Contains([]string{"sonnet", "opus", "haiku", "fable", "opusplan", "best"}, model)
}

// has reports whether the kind has a tool, which is named as models call it.
func (k *kind) has(tool string) bool {
	names := func(n string) bool {
		return toolOf(n) == tool || strings.HasPrefix(n, "mcp__") && strings.HasPrefix(tool, n+"__")
	}
	return (k.tools == nil || slices.ContainsFunc(k.tools, names)) && !slices.ContainsFunc(k.not, names)
}

// toolOf is the name of a tool by another name that it has.
func toolOf(name string) string {
	switch name = strings.TrimSpace(name); name {
	case oldAgentName:
		return agentName
	case "KillShell":
		return "TaskStop"
	}
	return name
}

// Limits of files that define agents.
const (
	maxKindFile  = 64 << 10 // bytes
	maxKindFiles = 100      // of a directory
)

// readKinds reads the files NAME.md of directories, in Claude Code's form: name, description,
// tools, disallowedTools, model, maxTurns and background between two lines ---, and the prompt.
// A relative directory is below the session's, and links that lead out of it are not followed.
// A file that cannot be read or has no name, description or prompt is left out, as are tools
// that this agent does not have. Of equal names, the last counts.
func readKinds(dirs []string, root string, d disk) (all []*kind) {
	for _, dir := range dirs {
		base, below := root, dir
		if filepath.IsAbs(dir) {
			base, below = dir, "."
		}
		at, err := os.OpenRoot(base)
		if err != nil {
			continue
		}
		all = withKinds(all, kindsIn(at, filepath.ToSlash(filepath.Clean(below)), d))
		_ = at.Close() // it was only read
	}
	return all
}

func kindsIn(root *os.Root, dir string, d disk) (all []*kind) {
	entries, err := fs.ReadDir(root.FS(), dir)
	if err != nil {
		return nil
	}
	read := 0
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if !strings.HasSuffix(e.Name(), ".md") || d.ask(diskRead, filepath.Join(root.Name(), name)) != nil {
			continue
		}
		if read++; read > maxKindFiles {
			break
		}
		text, err := readStart(func(name string) (*os.File, error) { return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) }, name, maxKindFile+1)
		if err != nil || len(text) > maxKindFile {
			continue
		}
		if k := parseKind(text); k != nil {
			all = withKinds(all, []*kind{k})
		}
	}
	return all
}

// list is a list, or a text with commas between.
type list []string

// UnmarshalYAML implements yaml's interface.
func (l *list) UnmarshalYAML(raw []byte) error {
	var text string
	if yaml.Unmarshal(raw, &text) == nil {
		*l = list{}
		for _, one := range strings.Split(text, ",") {
			if one = strings.TrimSpace(one); one != "" {
				*l = append(*l, one)
			}
		}
		return nil
	}
	return yaml.Unmarshal(raw, (*[]string)(l))
}

var kindName = regexp.MustCompile(`^[\w.:-]{1,64}$`)

// parseKind reads a definition. It returns nil if the text has no definition.
func parseKind(text string) *kind {
	head, prompt, ok := strings.Cut(strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), bom), "\n---")
	head, begins := strings.CutPrefix(head, "---\n")
	if _, prompt, _ = strings.Cut(prompt, "\n"); !ok || !begins {
		return nil
	}
	var in struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		Tools       list   `yaml:"tools"`
		Not         list   `yaml:"disallowedTools"`
		Model       string `yaml:"model"`
		Turns       int    `yaml:"maxTurns"`
		Background  *bool  `yaml:"background"`
	}
	if yaml.NewDecoder(bytes.NewReader([]byte(head))).Decode(&in) != nil {
		return nil
	}
	prompt = strings.ToValidUTF8(strings.TrimSpace(prompt), "")
	about := strings.Join(strings.Fields(strings.ToValidUTF8(in.Description, "")), " ")
	if !kindName.MatchString(in.Name) || about == "" || prompt == "" || in.Turns < 0 {
		return nil
	}
	k := &kind{name: in.Name, about: about, prompt: prompt, tools: in.Tools, not: in.Not, model: in.Model, turns: in.Turns, background: in.Background}
	if k.model == "inherit" {
		k.model = ""
	}
	if slices.Contains(k.tools, "*") {
		k.tools = nil
	}
	return k
}

// described are kinds as the model reads of them.
func described(kinds []*kind) string {
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n- %s: %s", k.name, k.about)
	}
	return b.String()
}

// withAgents are the members of system/init, and of the answer to initialize, with kinds of
// sub-agents.
func withAgents(info, answer agent.Object, kinds []*kind) (agent.Object, agent.Object) {
	info, answer = maps.Clone(info), maps.Clone(answer)
	names, list := []any{}, []any{}
	for _, k := range kinds {
		names = append(names, k.name)
		o := agent.Object{"name": k.name, "description": k.about}
		if k.model != "" {
			o["model"] = k.model
		}
		list = append(list, o)
	}
	info["agents"], answer["agents"] = names, list
	return info, answer
}

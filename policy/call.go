package policy

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
)

// part is something in a call that a specifier can be about: a simple command,
// a path, a host, a name.
type part interface {
	String() string
	// stopped says how far the specifier of a deny or ask rule fits.
	stopped(specifier, *work) match
	// covered reports whether the specifier of an allow rule fits; why says, if
	// there is something to say, what keeps it from fitting.
	covered(specifier, *work) (fits bool, why string)
}

// subject is a call as the rules see it.
type subject struct {
	parts []part
	// script is the whole of a shell command; nil for other calls.
	script *script
	// unclear is why the parts are not all there is to the call, or not what
	// they seem; "" when they are.
	unclear string
	// hidden is why it cannot be seen what the script runs; "" when it can.
	hidden string
	// never is set when no rule may allow the call.
	never bool
}

// decision is a policy at work on one call.
type decision struct {
	*Policy
	*work
	dir   string   // where the call runs, absolute and clean; "" when it is not known
	roots []string // the directories of the rules, by their names, once they are needed
}

// directories are those that a relative path of the call may count from: the
// call's first, then the rules'.
func (d *decision) directories() []string {
	if d.dir == "" || d.places.cwd == "" || d.dir == path.Clean(d.places.cwd) {
		return []string{cmp.Or(d.dir, d.places.cwd)}
	}
	return []string{d.dir, path.Clean(d.places.cwd)}
}

// isCwd reports whether a directory is that of the rules, by any of its names.
func (d *decision) isCwd(dir string) bool {
	if dir == "" || d.places.cwd == "" {
		return false
	}
	own, _ := d.names(path.Clean(d.places.cwd))
	names, _ := d.names(dir)
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(own, name) })
}

// read takes the call apart, as the tool named in it would.
func (d *decision) read(c Call) subject {
	shell, file, named := runsShell(c.Tool), readsFiles(c.Tool) || editsFiles(c.Tool) || c.Tool == "LSP", c.Tool == "Skill" || isAgentTool(c.Tool)
	if !shell && !file && !named && c.Tool != "WebFetch" || !d.spend(len(c.Input)/8) {
		return subject{}
	}
	in, err := parseInput(c.Input)
	switch {
	case err != nil:
		return subject{unclear: "the input is not a JSON object", never: true}
	case c.Tool == "BashInput":
		return subject{unclear: "it types into a running process"}
	case c.Tool == "Monitor" && in["command"] == nil:
		return subject{unclear: "it runs no command"}
	case shell:
		s := d.readShell(in)
		if c.Tool == "PowerShell" {
			s.unclear = "the command is of another shell"
		}
		return s
	case file:
		return d.readFile(c.Tool, in)
	case named:
		return readNames(c.Tool, in)
	}
	return readURL(in)
}

// input is a tool's input with exact keys: Go's decoder would also take
// "Command" for "command", which the agents do not.
type input map[string]json.RawMessage

func parseInput(raw json.RawMessage) (input, error) {
	in := input{}
	err := json.Unmarshal(raw, &in)
	return in, err
}

// text is the string under a key. ok is false when what is there is no string.
func (in input) text(key string) (s string, present, ok bool) {
	raw, present := in[key]
	if !present || string(raw) == "null" {
		return "", false, true
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", true, false
	}
	return s, true, true
}

// texts are the strings under any of the keys, each once. ok is false when one
// of them is not a string, or is empty.
func (in input) texts(keys ...string) (all []string, ok bool) {
	ok = true
	for _, key := range keys {
		s, present, isText := in.text(key)
		if present && (!isText || s == "") {
			ok = false
			continue
		}
		if present && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all, ok
}

// runsShell reports whether deny and ask rules about Bash are about the tool.
func runsShell(tool string) bool {
	switch tool {
	case "Bash", "BashInput", "Monitor", "PowerShell":
		return true
	}
	return false
}

// readsFiles reports whether Read rules are about the tool.
func readsFiles(tool string) bool {
	switch tool {
	case "Read", "Grep", "Glob", "LS", "NotebookRead":
		return true
	}
	return false
}

// editsFiles reports whether Edit rules are about the tool.
func editsFiles(tool string) bool {
	switch tool {
	case "Edit", "Write", "MultiEdit", "NotebookEdit":
		return true
	}
	return false
}

// isAgentTool reports whether the tool runs subagents: it has two names.
func isAgentTool(tool string) bool { return tool == "Agent" || tool == "Task" }

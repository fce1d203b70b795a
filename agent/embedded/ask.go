package embedded

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// The question about a call that the host gets, in the members and words of Claude Code 2.1.329
// (observed): why, about which path, and what it may suggest to the user.

// dangerous is the question about a removal that is asked about in every mode.
func dangerous(mode, why string) agent.Verdict {
	v := agent.Verdict{Reason: "safetyCheck", About: why, Unasked: why, Ask: agent.Object{
		"permission_suggestions": []any{}, "classifier_approvable": false, "suppress_always_allow_rule": true,
	}}
	if mode == "plan" {
		v.Unchecked = why
	}
	return v
}

// unchecked is what the model reads in plan mode of a call that may change something.
func unchecked(tool string) string {
	return "Auto mode is unavailable: its safety check does not run for this session, so " + tool + " was not run. Other actions that need the check will be denied too, and retrying won't help. Finish what you can without them, then tell the user what is blocked and that they can switch to another permission mode."
}

// askFile is the question about a call of a tool that works on a file.
func (t *talk) askFile(g *gates, mode string, own *tool, in agent.Object) agent.Verdict {
	if own.path == "" {
		return agent.Verdict{}
	}
	h, name := t.hands, own.place(t.hands, in)
	path := h.path(name)
	v := agent.Verdict{Ask: agent.Object{}}
	if !own.tree {
		v.Ask["description"] = strings.TrimPrefix(path, h.base()+"/")
	} else if pattern := str(in, "pattern"); pattern != "" {
		v.Ask["description"] = pattern
	}
	outside, target := h.leads(name)
	switch {
	case mode == "plan":
		v.Ask["permission_suggestions"], v.Ask["decision_reason_type"] = nil, "mode"
		return v
	case target != "":
		v.Blocked, v.Reason = target, "workingDir"
		v.About = name + " resolves through a symlink to " + target + ", which is outside the allowed working directories"
	case outside:
		v.Reason, v.About = "workingDir", "Path is outside allowed working directories"
	}
	suggestions := []any{}
	switch {
	case own.reads:
		dir := path
		if !own.tree {
			dir = filepath.Dir(path)
		}
		suggestions = append(suggestions, readRule(dir))
	case outside:
		if mode != "acceptEdits" {
			suggestions = append(suggestions, acceptEdits())
		}
		suggestions = append(suggestions, addDirectory(filepath.Dir(path)))
	default:
		if allows(g.edits(), policy.Call{Tool: own.name, Input: encoded(in), Cwd: h.dir()}) != protocol.BehaviorAllow { // one that no rule of the agent allows to be written
			v.Reason, v.About = "safetyCheck", "Claude requested permissions to edit "+path+" which is a sensitive file."
			if strings.Contains(path+"/", "/.claude/") {
				v.About = "Claude requested permissions to write to " + path + ", but you haven't granted it yet."
			}
			v.Ask["classifier_approvable"] = true
		}
		if mode != "acceptEdits" {
			suggestions = append(suggestions, acceptEdits())
		}
	}
	v.Ask["permission_suggestions"] = suggestions
	return v
}

func readRule(dir string) agent.Object { return addRules("session", readRuleOf(dir)) }

func readRuleOf(dir string) agent.Object {
	return agent.Object{"toolName": "Read", "ruleContent": "/" + strings.TrimSuffix(dir, "/") + "/**"}
}

// commandRules suggests to allow a command for good.
func commandRules(command string) agent.Object {
	return addRules("localSettings", agent.Object{"toolName": "Bash", "ruleContent": command})
}

func addRules(destination string, rules ...any) agent.Object {
	return agent.Object{"type": "addRules", "behavior": "allow", "destination": destination, "rules": rules}
}

func addDirectory(dir string) agent.Object {
	return agent.Object{"type": "addDirectories", "directories": []string{dir}, "destination": "session"}
}

// directoryOf is the directory that a question about a path suggests to allow.
func directoryOf(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return path
	}
	return filepath.Dir(path)
}

func acceptEdits() agent.Object {
	return agent.Object{"type": "setMode", "mode": "acceptEdits", "destination": "session"}
}

package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// expressed are the options that can be used: those that the protocol has a place for, and those
// that the host serves without the agent.
func expressed() []string {
	return []string{
		"Cwd", "AdditionalDirectories", "MCPServers", "Resume", "Model", "PermissionMode", "AllowDangerouslySkipPermissions",
		"CanUseTool", "PermissionTimeout", "Unattended", "IncludePartialMessages", "Env", "UnsetEnv", "CleanEnv",
		"Backend", "Runtime", "Spawner", "OnEvent", "OnMessage", "Stderr", "Tracer", "Limits", "InitializeTimeout", "CloseTimeout", "Graces",
		"InterruptGrace", "Supervisors", "Children", "MaxLine", "MaxRestarts", "RestartWindow", "EqualDeaths", "PassivateAfter",
		"RestartBackoff", "Recovery", "DecideRecovery", "Discard",
	}
}

// refusal says why an option cannot be used, and what to do. Options without an entry cannot be
// expressed in the protocol, and are to be left out.
func refusal(option string) (problem, fix string) {
	switch option {
	case "Policy":
		return "cannot be enforced: an agent of the protocol asks only about calls that it thinks need permission, so rules would not see the others",
			"use CanUseTool, which decides about what the agent asks, and the agent's own permission settings for the rest"
	case "Hooks":
		return "cannot be called: the protocol has no hooks", "leave them out; CanUseTool decides about what the agent asks"
	case "SDKMCPServers", "SDKMCPServerConfigs":
		return "cannot be reached: the protocol has no connection from the agent to MCP servers in this process", "run the server as a process or with a URL, and put it into MCPServers"
	case "PathToExecutable", "Executable", "ExecutableArgs", "ExtraArgs":
		return "has no effect: the backend has the whole command", "put the program and its arguments into acpclient.Backend"
	case "SessionID":
		return "cannot be chosen: the agent makes the session's id", "leave it out, and read the id from Client.SessionID"
	case "Auth":
		return "cannot be expressed in the protocol", "log in with the agent's own program, or give the credentials in Env"
	}
	return "cannot be expressed in the Agent Client Protocol", "leave it out; the agent's own configuration may have it"
}

func (d Dialect) check(o *dialect.Input) *build.Problems {
	p := &build.Problems{Backend: Name}
	switch {
	case len(d.command) == 0 || d.command[0] == "":
		p.Add("Backend", "has no program", "give the agent's command, such as acpclient.Backend(\"gemini\", \"--experimental-acp\")")
		return p
	case slices.ContainsFunc(d.command, func(s string) bool { return strings.IndexByte(s, 0) >= 0 }):
		p.Add("Backend", "has a NUL byte in its command", "remove it")
	}
	options, known := reflect.ValueOf(&o.Options).Elem(), expressed()
	for _, f := range reflect.VisibleFields(options.Type()) {
		switch {
		case len(f.Index) != 1 || slices.Contains(known, f.Name) || !given(options.FieldByIndex(f.Index)):
		case f.Name == "Hooks" && o.Policy != nil: // a policy brings one, and is refused itself
		case f.Name == "Isolation" && o.Isolation == session.IsolationAuto: // there is nothing to isolate
		default:
			problem, fix := refusal(f.Name)
			p.Add(f.Name, problem, fix)
		}
	}
	p.AddIf(o.HasSessionStore, "SessionStore", "cannot be filled: the agent has transcripts of its own", "leave it out")
	if m := o.PermissionMode; (m == protocol.ModeBypassPermissions || m == protocol.ModeYolo) && !o.AllowDangerouslySkipPermissions {
		p.Add("PermissionMode", fmt.Sprintf("is %s, and AllowDangerouslySkipPermissions is not set", m), "set it, or choose another mode")
	}
	if _, err := filepath.Abs(o.Cwd); err != nil {
		p.Addf("Cwd", "cannot be made absolute: %v", err)
	}
	build.NewEnv(o, p)
	checkServers(o, p)
	return p
}

// given reports whether an option has a value. An empty list is not a value.
func given(v reflect.Value) bool {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len() > 0
	}
	return !v.IsZero()
}

// sameJSON reports whether two texts are the same value.
func sameJSON(a, b json.RawMessage) bool {
	if len(b) == 0 {
		b = json.RawMessage("{}") // what build.PermissionAnswer would write
	}
	var x, y any
	if decode(a, &x) != nil || decode(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

// decode keeps numbers as they are written.
func decode(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(to)
}

func errChanged(tool, what string) error {
	return &session.ConfigError{
		Option: "CanUseTool", Backend: Name, Problem: fmt.Sprintf("allows %s with %s, which the protocol cannot express", tool, what),
		Fix: "allow the call as it is, or deny it",
	}
}

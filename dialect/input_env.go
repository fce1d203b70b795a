package dialect

import (
	"maps"
	"slices"
	"strings"
)

// LookupEnv returns the value of the variable name in the agent's environment, by the options and the parent's
// environment. If ParentEnv has the variable several times, the last entry counts, as in os/exec.
func (o *Input) LookupEnv(name string) (string, bool) {
	if v, ok := o.Env[name]; ok {
		return v, true
	}
	if o.CleanEnv || slices.Contains(o.UnsetEnv, name) {
		return "", false
	}
	return o.parentEnv(name)
}

// LookupHostEnv returns the value of the variable name for the host: Env first, then the parent's environment. The
// agent may get another value.
func (o *Input) LookupHostEnv(name string) (string, bool) {
	if v, ok := o.Env[name]; ok {
		return v, true
	}
	return o.parentEnv(name)
}

func (o *Input) parentEnv(name string) (string, bool) {
	for _, kv := range slices.Backward(o.ParentEnv) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// SetEnv sets a variable of Env in a copy of the map, because other Options may share the map.
func (o *Input) SetEnv(name, value string) {
	env := maps.Clone(o.Env)
	if env == nil {
		env = make(map[string]string, 1)
	}
	env[name] = value
	o.Env = env
	o.UnsetEnv = slices.DeleteFunc(slices.Clone(o.UnsetEnv), func(n string) bool { return n == name })
}

// Resumed returns a copy of the input that resumes sessionID. The copy names no other session, and does not fork or cut
// this one.
func (o *Input) Resumed(sessionID string) *Input {
	next := *o
	next.Resume, next.SessionID = sessionID, ""
	next.Continue, next.ForkSession = false, false
	next.ResumeSessionAt, next.ResumeDropsTurn = "", ""
	return &next
}

// Begun returns a copy of the input that begins a session under that id.
func (o *Input) Begun(sessionID string) *Input {
	next := o.Resumed("")
	next.SessionID = sessionID
	return next
}

package dialect

import (
	"maps"
	"slices"
	"strings"
)

// LookupEnv returns the value that the variable name will have in the agent's environment, as far as the options and
// the parent's environment say. The last of several entries of ParentEnv counts, as in os/exec.
func (o *Input) LookupEnv(name string) (string, bool) {
	if v, ok := o.Env[name]; ok {
		return v, true
	}
	if o.CleanEnv || slices.Contains(o.UnsetEnv, name) {
		return "", false
	}
	return o.parentEnv(name)
}

// LookupHostEnv returns the variable as the host sees it: Env first, then the parent's environment, whatever the
// agent itself will see of it.
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

// SetEnv sets a variable of Env without changing a map that other Options share.
func (o *Input) SetEnv(name, value string) {
	env := maps.Clone(o.Env)
	if env == nil {
		env = make(map[string]string, 1)
	}
	env[name] = value
	o.Env = env
	o.UnsetEnv = slices.DeleteFunc(slices.Clone(o.UnsetEnv), func(n string) bool { return n == name })
}

// Resumed returns a copy of the input that takes up a session where it is: it has no other session to go back to,
// and neither forks nor cuts this one.
func (o *Input) Resumed(sessionID string) *Input {
	next := *o
	next.Resume, next.SessionID = sessionID, ""
	next.Continue, next.ForkSession = false, false
	next.ResumeSessionAt, next.ResumeDropsTurn = "", ""
	return &next
}

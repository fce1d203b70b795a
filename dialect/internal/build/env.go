package build

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
)

// Env is the environment of a launch in the making.
type Env struct {
	vars  map[string]dialect.EnvVar
	unset map[string]bool
}

// NewEnv begins with the user's variables, all of them taken for secret.
func NewEnv(o *dialect.Input, p *Problems) *Env {
	e := &Env{vars: map[string]dialect.EnvVar{}, unset: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		checkEnvName(p, fmt.Sprintf("Env[%q]", name), name)
		if strings.IndexByte(o.Env[name], 0) >= 0 {
			p.Addf(fmt.Sprintf("Env[%q]", name), "holds a NUL byte, which no variable can")
		}
		if size := len(name) + len("=") + len(o.Env[name]); size > MaxArg {
			p.Add(fmt.Sprintf("Env[%q]", name), fmt.Sprintf("makes a variable of %d bytes, and the system takes %d", size, MaxArg),
				"put the value into a file, and pass its name")
		}
		e.Set(name, o.Env[name], true)
	}
	for _, name := range o.UnsetEnv {
		checkEnvName(p, "UnsetEnv", name)
		if _, both := o.Env[name]; both {
			p.Add("UnsetEnv", fmt.Sprintf("%s is also in Env", name), "use one of them")
		}
		e.Unset(name)
	}
	return e
}

func checkEnvName(p *Problems, option, name string) {
	p.AddIf(name == "" || strings.ContainsAny(name, "=\x00"), option, "is not the name of a variable",
		"a name is not empty and has no = in it")
}

// Set adds a variable, replacing an earlier one.
func (e *Env) Set(name, value string, secret bool) {
	e.vars[name] = dialect.EnvVar{Name: name, Value: value, Secret: secret}
	delete(e.unset, name)
}

// Default adds a variable unless the user has given it or asked to unset it.
func (e *Env) Default(name, value string) {
	if _, given := e.vars[name]; !given && !e.unset[name] {
		e.Set(name, value, false)
	}
}

// Own adds a variable that is not the user's to give, unless the user has asked to unset it.
func (e *Env) Own(name, value string) {
	if !e.unset[name] {
		e.Set(name, value, false)
	}
}

// Unset removes a variable.
func (e *Env) Unset(name string) {
	delete(e.vars, name)
	e.unset[name] = true
}

// Vars returns the variables by name.
func (e *Env) Vars() []dialect.EnvVar {
	out := make([]dialect.EnvVar, 0, len(e.vars))
	for _, name := range slices.Sorted(maps.Keys(e.vars)) {
		out = append(out, e.vars[name])
	}
	return out
}

// Removed returns the variables to remove by name.
func (e *Env) Removed() []string { return slices.Sorted(maps.Keys(e.unset)) }

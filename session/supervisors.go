package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/supervisor"
)

// Supervisors replaces how the supervisors of a session decide when one of its actors has
// crashed. Each crash is an error of this library or of your own code in a callback actor;
// the agent does not notice it. The zero value has the defaults.
type Supervisors struct {
	// Session is the policy for transport, router, Options.Children and callbacks, in this
	// order. Troupe's own are permanent, and a restart keeps what they work on. Zero fields: one_for_one, 3 crashes in 30 s, 10 ms
	// to 1 s. If the supervisor gives up, the session fails with a *supervisor.Failure.
	Session supervisor.Policy
	// Callbacks is the policy for the children of callbacks: hooks, permission, mcp,
	// modelpolicy and inquiry. Requests that a stopped or crashed one had taken are denied.
	// Zero fields: those of Session.
	Callbacks supervisor.Policy
	// Backoffs are delays before the restart of single actors, by their names: transport,
	// router, callbacks, hooks, permission, mcp, modelpolicy or inquiry. Default: the
	// Backoff of their supervisor.
	Backoffs map[string]supervisor.Backoff
}

// Validate returns a *[ConfigError] for each mistake.
func (s Supervisors) Validate() []error {
	problems := slices.Concat(
		CheckPolicy("Supervisors.Session", s.Session),
		CheckPolicy("Supervisors.Callbacks", s.Callbacks),
	)
	known := ownActors()
	for _, name := range slices.Sorted(maps.Keys(s.Backoffs)) {
		option := "Supervisors.Backoffs[" + name + "]"
		if !slices.Contains(known, name) {
			problems = append(problems, &ConfigError{Option: option, Problem: "names no actor", Fix: "use one of " + strings.Join(known, ", ")})
			continue
		}
		problems = append(problems, CheckPolicy(option, supervisor.Policy{Backoff: s.Backoffs[name]})...)
	}
	return problems
}

// CheckPolicy returns a *[ConfigError] for each mistake in the policy of a supervisor
// whose children are listed, so that simple_one_for_one is one.
func CheckPolicy(option string, p supervisor.Policy) []error {
	return mistakes(option, p.Spec(option, supervisor.Child{Name: "child"}).Validate())
}

func checkChildren(children []*Child) []error {
	var problems []error
	bad := func(option, problem, fix string) {
		problems = append(problems, &ConfigError{Option: option, Problem: problem, Fix: fix})
	}
	var specs []supervisor.Child
	for i, c := range children {
		option := fmt.Sprintf("Children[%d]", i)
		if c == nil || c.incarnation == nil {
			bad(option, "is nil or has no behaviour", "make it with session.NewChild")
			continue
		}
		switch name := c.spec.Name; {
		case slices.Contains(ownActors(), name):
			bad(option, "has the name "+name+" of an actor of Troupe", "choose another name")
		case strings.ContainsAny(name, "/#"):
			bad(option, fmt.Sprintf("has the name %q, which contains / or #", name), "choose another name")
		}
		specs = append(specs, c.spec)
	}
	return append(problems, mistakes("Children", supervisor.Spec{Name: "Children", Children: specs}.Validate())...)
}

// ownActors are the actors of a session that are Troupe's.
func ownActors() []string {
	return []string{"transport", "router", "callbacks", "hooks", "permission", "mcp", "modelpolicy", "inquiry", "mirror"}
}

// mistakes are those of a supervisor's specification, in terms of an option.
func mistakes(option string, err error) []error {
	if err == nil {
		return nil
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for i, err := range all {
		if mistake, ok := errors.AsType[*supervisor.SpecError](err); ok {
			problem, fix, _ := strings.Cut(mistake.Problem, "; ")
			at := option
			if mistake.Child != "" {
				at += "[" + mistake.Child + "]"
			}
			all[i] = &ConfigError{Option: at, Problem: problem, Fix: fix}
		}
	}
	return all
}

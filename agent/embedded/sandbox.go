package embedded

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/confine"
	"github.com/agent-troupe/troupe/session"
)

// sandboxed is what Options.Sandbox asks for, as far as this agent can confine commands.
type sandboxed struct {
	on          bool
	must        bool     // also if the kernel cannot
	write, hide []string // as the options have them
}

// sandboxOf reads Options.Sandbox. A field that this agent cannot follow is an error that names
// it.
func sandboxOf(o *dialect.Input) (box sandboxed, warnings []session.Warning, err error) {
	s := o.Sandbox
	if s == nil {
		return box, nil, nil
	}
	switch on, said := s.Enabled.Value(); {
	case !said:
		return box, nil, problem("Sandbox.Enabled", "is not set, and no settings are read that could set it", "set it, or leave Sandbox out")
	case !on:
		return box, nil, nil
	}
	box = sandboxed{on: true, must: s.FailIfUnavailable.Or(true)}
	const leave = "leave it out"
	var all []error
	refuse := func(set bool, field, why, fix string) {
		if set {
			all = append(all, problem("Sandbox."+field, why, fix))
		}
	}
	const noProxy = "is about the network, which this agent cannot confine"
	const otherSandbox = "is about Claude Code's sandbox, and this agent has another"
	refuse(s.AutoAllowBashIfSandboxed.Or(false), "AutoAllowBashIfSandboxed", "would let commands run unasked that can use the network", "allow commands with rules")
	refuse(len(s.ExcludedCommands) > 0, "ExcludedCommands", "is not supported: all commands are confined", leave)
	refuse(s.AllowUnsandboxedCommands.Or(false), "AllowUnsandboxedCommands", "is not supported: all commands are confined", leave)
	refuse(s.Network != nil, "Network", noProxy, "have commands run in a container: Config.Confine.Spawner")
	refuse(len(s.IgnoreViolations) > 0, "IgnoreViolations", "is not supported: no violation is reported", leave)
	refuse(s.EnableWeakerNestedSandbox.Or(false), "EnableWeakerNestedSandbox", otherSandbox, leave)
	refuse(s.EnableWeakerNetworkIsolation.Or(false), "EnableWeakerNetworkIsolation", noProxy, leave)
	refuse(s.AllowNestedUserNamespaces.Or(false), "AllowNestedUserNamespaces", otherSandbox, leave)
	refuse(s.AllowAppleEvents.Or(false), "AllowAppleEvents", otherSandbox, leave)
	refuse(s.Ripgrep != nil, "Ripgrep", otherSandbox, leave)
	refuse(s.BwrapPath != "", "BwrapPath", otherSandbox, leave)
	refuse(s.SocatPath != "", "SocatPath", otherSandbox, leave)
	refuse(len(s.Extra) > 0, "Extra", otherSandbox, leave)
	if f := s.Filesystem; f != nil {
		refuse(f.Disabled.Or(false), "Filesystem.Disabled", "leaves nothing to confine", "set Enabled to false")
		refuse(f.AllowManagedReadPathsOnly.Or(false), "Filesystem.AllowManagedReadPathsOnly", "is about managed settings, and this agent has none", leave)
		refuse(len(f.AllowRead) > 0, "Filesystem.AllowRead", "is not supported: what DenyRead names is hidden with all that is in it", "name what to hide in DenyRead")
		refuse(len(f.DenyWrite) > 0, "Filesystem.DenyWrite", "is not supported: a directory can be written with all that is in it", "name what to write in AllowWrite")
		box.write, box.hide = paths("AllowWrite", f.AllowWrite, refuse), paths("DenyRead", f.DenyRead, refuse)
	}
	if c := s.Credentials; c != nil {
		refuse(len(c.EnvVars) > 0, "Credentials.EnvVars", "is not supported", "name the variables in UnsetEnv")
		refuse(c.AllowPlaintextInject.Or(false) || c.AWSPairs != nil || c.SigV4 != nil, "Credentials", "is about requests that a proxy changes, and this agent has none", "set only Files")
		for _, file := range c.Files {
			refuse(file.Mode != "deny", "Credentials.Files", "can only deny files, not mask what they have", "set the mode deny")
			box.hide = append(box.hide, paths("Credentials.Files", []string{file.Path}, refuse)...)
		}
	}
	if err := errors.Join(all...); err != nil {
		return sandboxed{}, nil, err
	}
	warn := func(what, fix string) {
		warnings = append(warnings, session.Warning{Option: "Sandbox", Problem: what, Fix: fix})
	}
	warn("confines what commands do with files, and not the network; they are asked about as without it", "have commands run in a container: Config.Confine.Spawner of the backend")
	if err := confine.Available(); err != nil && !box.must {
		warn("does not confine commands: "+err.Error(), "leave FailIfUnavailable out to make this an error")
	}
	return box, warnings, nil
}

// paths are the paths of a list, which may have no wildcards. // at the beginning is one /.
func paths(field string, given []string, refuse func(bool, string, string, string)) (all []string) {
	if field != "Credentials.Files" {
		field = "Filesystem." + field
	}
	for _, path := range given {
		refuse(path == "" || strings.ContainsAny(path, "*?[{"), field, "has "+path+", which is no plain path", "name the directory, or use Policy.Deny with Read(…)")
		if strings.HasPrefix(path, "//") {
			path = path[1:]
		}
		all = append(all, filepath.FromSlash(path))
	}
	return slices.Clip(all)
}

// unboxed are the options without the sandbox, which Claude Code's arguments would be about,
// and without the choice of models, which Claude Code does not have.
func unboxed(o *dialect.Input) *dialect.Input {
	if o.Sandbox == nil && o.ResolveModel == nil {
		return o
	}
	own := *o
	own.Sandbox, own.ResolveModel = nil, nil
	return &own
}

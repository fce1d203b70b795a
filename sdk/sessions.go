package sdk

import (
	"os"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/transcript"
)

// Sessions returns the sessions that an agent with the options o would find on this
// machine: to list, read, rename, tag, archive, fork and delete them. No agent runs. The
// agent is that of o.Backend, and Claude Code if that is nil. The sessions are in the
// agent's configuration directory, which its environment decides: o.Env, o.UnsetEnv and
// o.CleanEnv count as they do for a session. With o.Cwd only the sessions of that
// directory and of the other worktrees of its repository are there, without it those of
// all directories. With o.SessionStore they are those of the store instead, for o.Cwd or
// else the working directory of this process; leave it out to import sessions of this
// machine into a store. o may be nil; its other fields do not count.
//
// The error is a *[ConfigError]: the backend is unknown or in this process and stores no
// sessions, or the environment has no home directory.
func Sessions(o *Options) (*transcript.Sessions, error) {
	if o == nil {
		o = &Options{}
	}
	data := dialect.Input{Options: *o, Facts: dialect.Facts{ParentEnv: os.Environ()}}
	vendor := transcript.Claude
	root, name := "", ""
	if o.Backend != nil {
		data.Spawner = nil // nothing is started
		what, err := choose(&data)
		switch {
		case err != nil:
			return nil, err
		case !what.Local() && what.Stores:
			if d, ok := what.Dialect.(dialect.Isolator); ok {
				dir := d.ConfigDir(&data)
				if root = dir.Path; root == "" && o.SessionStore == nil {
					return nil, noHome(o.Backend.AgentName(), dir.Variable)
				}
			}
		case !what.Local():
			return nil, &ConfigError{Option: "Backend", Backend: o.Backend.AgentName(), Problem: "keeps no session files on this machine",
				Fix: "use sdk.Claude or sdk.Qoder"}
		case what.Dialect.Name() == qoder.Name:
			vendor = transcript.Qoder
		}
	}
	if root == "" {
		root, name = transcript.Root(vendor, func(name string) string {
			value, _ := data.LookupEnv(name)
			return value
		})
	}
	if root == "" && o.SessionStore == nil {
		return nil, noHome(vendorName(vendor), configVariable(vendor))
	}
	return &transcript.Sessions{Vendor: vendor, Root: root, Dir: o.Cwd, ProjectName: name, Store: o.SessionStore}, nil
}

// noHome says that the directory of an agent's sessions is not known. variable names it.
func noHome(agent, variable string) error {
	return &ConfigError{Option: "Env", Backend: agent, Problem: "has no HOME, so the directory of the sessions is not known", Fix: "set HOME, or " + variable}
}

func vendorName(v transcript.Vendor) string {
	if v == transcript.Qoder {
		return qoder.Name
	}
	return claude.Name
}

func configVariable(v transcript.Vendor) string {
	if v == transcript.Qoder {
		return "QODER_CONFIG_DIR"
	}
	return "CLAUDE_CONFIG_DIR"
}

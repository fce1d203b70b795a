package build

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/session"
)

// MaxArg is the longest argument or variable that Linux passes to a program, its final NUL not counted (MAX_ARG_STRLEN).
const MaxArg = 128*1024 - 1

// Args is an argument list in the making. Each method names the option the argument comes from, for the errors.
type Args struct {
	list  []string
	flags map[string]string // flag → option
	p     *Problems
}

// NewArgs returns a list that begins with fixed arguments.
func NewArgs(p *Problems, fixed ...string) *Args {
	a := &Args{flags: map[string]string{}, p: p, list: slices.Clone(fixed)}
	for _, f := range fixed {
		if strings.HasPrefix(f, "--") {
			a.flags[f] = "the protocol"
		}
	}
	return a
}

// List returns the arguments.
func (a *Args) List() []string { return a.list }

func (a *Args) add(option, flag string, args ...string) {
	a.flags[flag] = option
	for _, arg := range args {
		if len(arg) > MaxArg {
			a.p.Add(option, fmt.Sprintf("makes an argument of %d bytes, and the system takes %d", len(arg), MaxArg),
				"shorten it, or move it to a settings file")
		}
		if strings.IndexByte(arg, 0) >= 0 {
			a.p.Addf(option, "holds a NUL byte, which no argument can")
		}
	}
	a.list = append(a.list, args...)
}

// Switch adds "--flag" if on.
func (a *Args) Switch(option, flag string, on bool) {
	if on {
		a.add(option, flag, flag)
	}
}

// Joined adds "--flag=value", empty or not.
func (a *Args) Joined(option, flag, value string) { a.add(option, flag, flag+"="+value) }

// JoinedIf adds "--flag=value" unless value is empty.
func (a *Args) JoinedIf(option, flag, value string) {
	if value != "" {
		a.Joined(option, flag, value)
	}
}

// Split adds "--flag" and "value", empty or not. A value that begins with a dash is joined, or the agent takes it for a
// flag: --resume --yolo turns on yolo (observed on qodercli 1.1.52).
func (a *Args) Split(option, flag, value string) {
	if len(value) > 1 && value[0] == '-' {
		a.Joined(option, flag, value)
		return
	}
	a.add(option, flag, flag, value)
}

// SplitIf adds "--flag" and "value" unless value is empty.
func (a *Args) SplitIf(option, flag, value string) {
	if value != "" {
		a.Split(option, flag, value)
	}
}

// Extra adds the user's extra arguments by sorted key. reserved are flags that only the dialect may
// set.
func (a *Args) Extra(extra map[string]session.Opt[string], reserved ...string) {
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		option := fmt.Sprintf("ExtraArgs[%q]", key)
		flag := "--" + key
		if key == "" || strings.HasPrefix(key, "-") || strings.ContainsAny(key, "= \t\r\n") {
			a.p.Add(option, "is not the name of a flag", `give the name without dashes and the value apart, as in {"max-turns": "3"}`)
			continue
		}
		if slices.Contains(reserved, flag) {
			a.p.Add(option, "is set by the protocol itself", "leave it out")
			continue
		}
		if owner, taken := a.flags[flag]; taken {
			a.p.Add(option, "is already set by "+owner, "use one of them")
			continue
		}
		if value, ok := extra[key].Value(); ok {
			a.Split(option, flag, value)
		} else {
			a.Switch(option, flag, true)
		}
	}
}

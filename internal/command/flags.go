package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agent-troupe/troupe/base/spell"
	"github.com/agent-troupe/troupe/sdk"
)

// flagSpec is a flag of a command.
type flagSpec struct {
	name     string
	short    string // one letter, or ""
	arg      string // what its value is called; "" for a switch
	optional bool   // the value may be left out, and has to be joined with =
	help     string
	option   string // the field of sdk.Options that it sets, or ""
	set      func(s *settings, value string) error
	values   []string // all that set takes, if they are few
}

// helpFlag is for the lists of flags: [cobra] shows the help.
func helpFlag() flagSpec {
	return flagSpec{name: "help", short: "h", help: "this text", set: func(*settings, string) error { return nil }}
}

// jsonFlag is for commands that print a value.
func jsonFlag() flagSpec {
	return flagSpec{name: "json", help: "print JSON", set: on(func(s *settings) *bool { return &s.asJSON })}
}

// remarksFlag is for commands that have remarks on stderr.
func remarksFlag() flagSpec {
	return flagSpec{name: "quiet", short: "q", help: "print no remarks on stderr, only errors", set: on(func(s *settings) *bool { return &s.quiet })}
}

// switched is the value that pflag gives to a switch without one. No argument of a process has it.
const switched = "\x00"

// flagValue implements [pflag.Value]. A value is set when the command line is complete: the file of
// --config comes first.
type flagValue struct {
	flagSpec
	s *settings
}

// givenFlag is a flag of the command line.
type givenFlag struct {
	flagSpec
	value string
}

// Set implements [pflag.Value].
func (f *flagValue) Set(value string) error {
	if f.optional && value == switched {
		value = ""
	} else if f.arg == "" {
		if value != switched {
			return &usageError{fmt.Sprintf("--%s takes no value", f.name), "write it without =" + value}
		}
		value = ""
	}
	f.s.given = append(f.s.given, givenFlag{f.flagSpec, value})
	return nil
}

// Type implements [pflag.Value].
func (f *flagValue) Type() string {
	if f.arg == "" {
		return "bool"
	}
	return f.arg
}

// String implements [pflag.Value]: cobra asks for the value of --help.
func (f *flagValue) String() string {
	if f.arg != "" || f.s == nil {
		return ""
	}
	return strconv.FormatBool(f.s.gave(f.name))
}

// addFlags gives a command its flags. They fill s, see [settings.complete].
func addFlags(to *pflag.FlagSet, specs []flagSpec, s *settings) {
	for _, spec := range specs {
		f := to.VarPF(&flagValue{spec, s}, spec.name, spec.short, spec.help)
		if spec.arg == "" || spec.optional {
			f.NoOptDefVal = switched
		}
	}
}

// gave reports whether the command line has the flag.
func (s *settings) gave(name string) bool {
	return slices.ContainsFunc(s.given, func(f givenFlag) bool { return f.name == name })
}

// complete reads the options in the file that --config names, and sets what the flags say over them.
// Rules, directories and variables add to those in the file; any other flag replaces what is there.
func (s *settings) complete() error {
	for _, f := range s.given {
		if f.name == "config" {
			s.config = f.value
		}
	}
	if s.gave("nats") || s.gave("detach") {
		s.machines.load = []sdk.LoadOption{loadElsewhere()}
	}
	if s.config != "" {
		opts, err := sdk.LoadOptionsFile(s.config, s.machines.load...)
		if err != nil {
			return &usageError{problem: err.Error()}
		}
		s.opts, s.file = *opts, *opts
	}
	for _, f := range s.given {
		if err := f.set(s, f.value); err != nil {
			return &usageError{problem: fmt.Sprintf("--%s: %v", f.name, err)}
		}
	}
	return nil
}

// longFlags returns the arguments with each flag as --name. -name is --name here: pflag would read it as
// -n with the value "ame", so that a typo is another flag.
func longFlags(cmd *cobra.Command, args []string) ([]string, error) {
	out := append([]string{}, args...) // cobra takes nil for the arguments of the process
	named, value := true, false
	for i, arg := range args {
		switch {
		case value:
			value = false
		case arg == "--":
			return out, nil
		case len(arg) < 2 || arg[0] != '-':
			next := child(cmd, arg)
			if named = named && next != nil; named {
				cmd = next
			}
		default:
			name, _, inline := strings.Cut(arg, "=")
			f := cmd.Flags().Lookup(strings.TrimPrefix(strings.TrimPrefix(name, "-"), "-"))
			if len(name) == 2 {
				f = cmd.Flags().ShorthandLookup(name[1:])
			}
			if f == nil {
				return nil, unknownFlag(cmd, name)
			}
			out[i] = "--" + f.Name + arg[len(name):]
			value = f.NoOptDefVal == "" && !inline
		}
	}
	return out, nil
}

// child is the command below cmd that a word names, or nil.
func child(cmd *cobra.Command, word string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == word {
			return c
		}
	}
	return nil
}

func unknownFlag(cmd *cobra.Command, arg string) error {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	near := nearest(strings.TrimLeft(arg, "-"), names)
	words := strings.Fields(cmd.CommandPath())
	switch {
	case near != "":
		return &usageError{"there is no flag " + arg, "did you mean --" + near + "?"}
	case cmd.Annotations[flagsAfter] != "":
		return flagFirst(cmd)
	}
	fix := "troupe help " + words[1] + " lists them all"
	if words[len(words)-1] == "run" {
		fix += "; put -- before a prompt that begins with a dash"
	}
	return &usageError{"there is no flag " + arg, fix}
}

// flagFirst is the mistake of a command line that has a flag before the name of a command.
func flagFirst(cmd *cobra.Command) error {
	return &usageError{"a flag comes before the command", "write " + cmd.Annotations[flagsAfter]}
}

func unknownCommand(name string, commands []*cobra.Command) error {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name())
	}
	if near := nearest(name, names); near != "" {
		return &usageError{fmt.Sprintf("there is no command %q", name), "did you mean troupe " + near + "?"}
	}
	return &usageError{fmt.Sprintf("there is no command %q", name), fmt.Sprintf("to give it to an agent: troupe run %q", name)}
}

// nearest is the one of names that is at most two letters off, and at most half of its
// letters, or "".
func nearest(name string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		if d := spell.Distance(name, n); d < least && 2*d <= len(n) {
			best, least = n, d
		}
	}
	return best
}

// split cuts a list at the commas outside of parentheses: a permission rule may
// hold some.
func split(list string) []string {
	var out []string
	depth, from := 0, 0
	cut := func(to int) {
		if s := strings.TrimSpace(list[from:to]); s != "" {
			out = append(out, s)
		}
		from = to + 1
	}
	for i, r := range list {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			cut(i)
		}
	}
	cut(len(list))
	return out
}

package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/confine"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/session"
)

// Confine confines the commands of the tool Bash, and ~/.bashrc, which is read for them. It does
// not confine tools that are not commands, MCP servers, hooks and callbacks, which run in this
// program or are started by it as you say. The zero value confines nothing.
type Confine struct {
	// Spawner starts the commands somewhere else, such as in a container or on another
	// machine: see sdk.SpawnThrough. Each is /bin/bash with arguments, in the working directory. It
	// is responsible for all that a command starts. Default: they start on this machine.
	Spawner session.Spawner
	// Shared says that the working directory, and those that options and answers add, are the
	// same files under the same paths where the commands of Spawner run. The tools for
	// files then work in these directories alone. false: Options.Tools must leave these tools out,
	// but for Read, which then reads the output of commands alone.
	Shared bool
	// Landlock has the Linux kernel (6.2 or later) confine the commands, and all that they start.
	// They can write in the working directory, in those that options and answers add, in Write,
	// and in a directory for temporary files that TMPDIR names. They can read everything but
	// Hide, and what rules Read(…) of Options.Policy.Deny and Options.DisallowedTools name. The
	// program must call runtime.ServeGuard first in main. If one of these is missing, a session
	// is a session.ConfigError.
	Landlock bool
	// Write are further files and directories that commands can write with Landlock. They must
	// exist. ~/ is the home directory.
	Write []string
	// Hide are files and directories that commands cannot read with Landlock.
	Hide []string
}

// confined is what confines the commands of a session.
type confined struct {
	spawner session.Spawner // starts them elsewhere; nil: Landlock
	shared  bool
	write   []string     // links followed
	hide    []string     // absolute
	rules   policy.Rules // with the deny rules of Options.Policy
}

// limited is the spawner of a session whose commands are confined. It goes with the seams, so
// that no hands are without.
type limited struct {
	session.Spawner
	*confined
}

// confined is what confines commands, or nil.
func (h *hands) confined() *confined {
	if l, is := h.seams.Spawner.(limited); is {
		return l.confined
	}
	return nil
}

// far reports whether commands run where the files of this machine are not.
func (h *hands) far() bool {
	c := h.confined()
	return c != nil && c.spawner != nil && !c.shared
}

// confinement is how the commands of a session with the options are confined, or nil.
// Mistakes in Options.Sandbox are found with the other options.
func (s *service) confinement(in *dialect.Input) (*confined, error) {
	c := s.Confine
	box, _, _ := sandboxOf(in) // it is off if it has mistakes
	switch {
	case c.Spawner != nil && c.Landlock:
		return nil, problem("Backend", "has a Confine.Spawner, and Confine.Landlock confines commands on this machine", "set one of them")
	case !c.Landlock && len(c.Write)+len(c.Hide) > 0:
		return nil, problem("Backend", "has Confine.Write or Confine.Hide, which only Confine.Landlock makes use of", "set Confine.Landlock, or leave them out")
	case c.Shared && c.Spawner == nil:
		return nil, problem("Backend", "has Confine.Shared, which is about Confine.Spawner", "set Confine.Spawner, or leave it out")
	case c.Spawner != nil && box.on:
		return nil, problem("Sandbox", "confines commands on this machine, and Config.Confine of the backend has them run elsewhere", "leave it out")
	case c.Spawner != nil:
		return &confined{spawner: c.Spawner, shared: c.Shared}, s.elsewhere(in)
	case !c.Landlock && !box.on:
		return nil, nil
	}
	option := "Backend"
	if !c.Landlock {
		option = "Sandbox"
	}
	switch err := confine.Available(); {
	case err != nil && option == "Sandbox" && !box.must:
		return nil, nil // there is a warning
	case err != nil:
		return nil, problem(option, "cannot confine commands: "+err.Error(), "use a newer kernel, or Config.Confine.Spawner with a container")
	case !confine.Serves():
		return nil, problem(option, "has this program started again for each command, and its main does not call runtime.ServeGuard", "call it first in main")
	}
	home, _ := in.LookupEnv("HOME")
	root := workdir(in.Cwd)
	made := &confined{}
	for _, list := range []struct {
		option string
		paths  []string
	}{{option, c.Write}, {"Sandbox.Filesystem.AllowWrite", box.write}} {
		for _, path := range list.paths {
			at, err := filepath.EvalSymlinks(placed(path, root, home))
			if err != nil {
				return nil, problem(list.option, fmt.Sprintf("lets commands write %s, which cannot be found: %s", path, err), "make it, or leave it out")
			}
			made.write = append(made.write, at)
		}
	}
	for _, path := range slices.Concat(c.Hide, box.hide) {
		made.hide = append(made.hide, placed(path, root, home))
	}
	if p := in.Policy; p != nil {
		made.rules = policy.Rules{Deny: p.Deny, Cwd: p.Cwd, Root: p.Root, Home: p.Home, Directories: p.Directories, Resolve: resolve}
		if made.rules.Cwd == "" {
			made.rules.Cwd = root
		}
		if made.rules.Home == "" {
			made.rules.Home = home
		}
	}
	return made, nil
}

// placed is a path of the options as an absolute one.
func placed(path, root, home string) string {
	if rest, ok := strings.CutPrefix(path+"/", "~/"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, rest)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(root, path)
}

// elsewhere looks for tools that would act on this machine, although commands run elsewhere.
func (s *service) elsewhere(in *dialect.Input) error {
	if s.Confine.Shared {
		return nil
	}
	var wrong, right []string
	for _, t := range toolbox(true, nil) {
		switch given := in.Tools.IsDefault() || in.Tools.IsAll() || slices.Contains(in.Tools.Names(), t.name) || slices.Contains(in.Tools.Names(), "default"); {
		case t.path == "" || t.name == "Read":
			right = append(right, t.name)
		case given && !slices.Contains(in.DisallowedTools, t.name):
			wrong = append(wrong, t.name)
		}
	}
	if wrong == nil {
		return nil
	}
	return problem("Tools", "has "+strings.Join(wrong, ", ")+", which work on the files of this machine, and commands run elsewhere (Config.Confine of the backend)",
		"set Confine.Shared if the directories are the same there, or name tools such as "+strings.Join(right, ", "))
}

// refusal says why a tool may not use a file, since commands do not run where the tool works;
// "": it may.
func (h *hands) refusal(own *tool, in agent.Object) string {
	c := h.confined()
	if c == nil || c.spawner == nil || own.path == "" {
		return ""
	}
	path := own.place(h, in)
	if own.name == "Read" && h.kept(path) {
		return ""
	}
	if h.far() {
		return own.name + " works on another machine than commands, so it reads only what is kept of their output. Use Bash."
	}
	if h.isPlan(path) { // it is this program's own
		return ""
	}
	if at, err := resolve(h.path(path)); err == nil {
		for _, dir := range append([]string{h.real}, h.directories()...) {
			if within(at, dir) {
				return ""
			}
		}
	}
	return own.name + " works only in the working directories: commands run elsewhere, where other files are different. Use Bash."
}

// wrap is a command as it is started: where, how, and with what at the beginning of its input.
func (h *hands) wrap(how session.Command) (session.Spawner, session.Command, []byte, error) {
	c := h.confined()
	switch {
	case c == nil:
		return h.seams.Spawner, how, nil, nil
	case c.spawner != nil:
		return c.spawner, how, nil, nil
	}
	tmp, err := h.keep("tmp")
	if err != nil {
		return nil, how, nil, err
	}
	writable := h.writable()
	for _, dir := range writable {
		if within(tmp, dir) { // what this program keeps there could be replaced by links
			return nil, how, nil, fmt.Errorf("the command was not run: the directory for temporary files, %s, is in %s, where confined commands can write; TMPDIR must name another", h.tmp(), dir)
		}
	}
	hides, err := h.hides()
	if err != nil {
		return nil, how, nil, err
	}
	writable = append(writable, tmp)
	tree, err := confine.Readable(hides, writable...)
	if err != nil {
		return nil, how, nil, fmt.Errorf("the command was not run, since it could not be confined: %w", err)
	}
	how.Env = slices.DeleteFunc(slices.Clone(how.Env), func(kv string) bool { return strings.HasPrefix(kv, "TMPDIR=") })
	how.Env = append(how.Env, "TMPDIR="+tmp)
	how, input := confine.RulesOf(tree, writable).Wrap(how)
	return h.seams.Spawner, how, input, nil
}

// writable are the directories and files that confined commands can write, but for temporary
// ones. One in another is left out: commands could replace it.
func (h *hands) writable() (all []string) {
	given := slices.Concat([]string{h.real}, h.directories(), h.confined().write)
	for i, path := range given {
		if !slices.ContainsFunc(given[:i], func(o string) bool { return o == path }) &&
			!slices.ContainsFunc(given, func(o string) bool { return o != path && within(path, o) }) {
			all = append(all, path)
		}
	}
	return all
}

// hides says what confined commands may not read.
func (h *hands) hides() (confine.Hides, error) {
	c := h.confined()
	h.mu.Lock()
	own := h.rules
	h.mu.Unlock()
	var rules []confine.Hides
	if own != nil {
		rules = append(rules, own.Hiding())
	}
	if len(c.rules.Deny) > 0 {
		p, err := policy.Compile(c.rules)
		if err != nil {
			return nil, fmt.Errorf("the command was not run: %w", err)
		}
		rules = append(rules, p.Hiding())
	}
	var hidden []string
	for _, path := range c.hide {
		at, err := resolve(path)
		if err != nil {
			return nil, fmt.Errorf("the command was not run, since what it may not read cannot be found: %w", err)
		}
		hidden = append(hidden, at)
	}
	return func(path string) (here, below bool) {
		for _, at := range hidden {
			here, below = here || within(path, at), below || within(at, path)
		}
		for _, hides := range rules {
			a, b := hides(path)
			here, below = here || a, below || b
		}
		return here, below
	}, nil
}

// confinedNote says to the model that a command may have failed since it is confined; "": it has not.
func (h *hands) confinedNote(output string) string {
	if h.confined() == nil || h.confined().spawner != nil || !denied(output) {
		return ""
	}
	return "(Commands are confined: they can write only in " + strings.Join(h.writable(), ", ") + " and $TMPDIR, cannot read what deny rules name, and can make and remove nothing directly in a directory that has such a file.)"
}

func denied(output string) bool {
	output = strings.ToLower(output)
	for _, text := range []string{"permission denied", "operation not permitted", "invalid cross-device link"} {
		if strings.Contains(output, text) {
			return true
		}
	}
	return false
}

// shellsFile is a new file to which a command's shell writes; "": commands run elsewhere.
func (h *hands) shellsFile(name string) (string, error) {
	below := ""
	switch c := h.confined(); {
	case c == nil:
	case c.spawner != nil:
		return "", nil
	default:
		below = "tmp"
	}
	dir, err := h.keep(below)
	return filepath.Join(dir, name), err
}

// there looks whether the shell's directory exists, if it is one of this machine.
func (h *hands) there(dir string) error {
	if h.far() {
		return nil
	}
	_, err := os.Stat(dir)
	return err
}

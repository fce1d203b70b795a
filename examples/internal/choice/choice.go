package choice

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/agent/embedded/demo"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Agent is the agent of an example. The zero value is the one that needs no account: the
// demonstration, or the example's script.
type Agent struct {
	Name  string // claude, qoder, demo or scripted; "": as above
	Model string // of the embedded agent; "": the agent is another one
	Dir   string // for the files of the demonstration; "": a new temporary directory
}

// Flags adds -agent and -model to the flags of the program.
func Flags() *Agent {
	var a Agent
	flag.StringVar(&a.Name, "agent", "", "claude or qoder; default: an agent that needs no account")
	flag.StringVar(&a.Model, "model", "", "the embedded agent with this model: anthropic/NAME, openai/NAME or URL#NAME")
	return &a
}

// Main runs an example with the agent of the flags, and with the arguments as its prompt, or
// else the given one. ctx ends at Ctrl-C and SIGTERM.
func Main(prompt string, run func(ctx context.Context, agent *Agent, prompt string) error) {
	agent := Flags()
	flag.Parse()
	if flag.NArg() > 0 {
		prompt = strings.Join(flag.Args(), " ")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, agent, prompt); err != nil {
		log.Fatal(err)
	}
}

// Options returns the options of the agent. Without a name it is the demonstration, which
// works in a temporary directory.
func (a *Agent) Options() (*sdk.Options, error) {
	switch {
	case a.Model != "":
		return a.embedded()
	case a.Name == "claude":
		return &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), SystemPrompt: sdk.PresetPrompt("")}, nil
	case a.Name == "qoder":
		return &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()}, nil
	case a.Demonstrates():
		return a.demonstration()
	}
	return nil, fmt.Errorf("-agent %q is not known: use claude or qoder, or leave it out", a.Name)
}

// OrScript is Options for an example of what only a script can show: without a name the
// agent is that script.
func (a *Agent) OrScript(script session.Backend) (*sdk.Options, error) {
	if a.Model == "" && (a.Name == "" || a.Name == "scripted") {
		return &sdk.Options{Backend: script}, nil
	}
	return a.Options()
}

// Demonstrates reports whether Options are those of the demonstration.
func (a *Agent) Demonstrates() bool { return a.Model == "" && (a.Name == "" || a.Name == demo.Name) }

// demonstration keeps its sessions and their files in one directory.
func (a *Agent) demonstration() (*sdk.Options, error) {
	dir := a.Dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "troupe-example-"); err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, "a demonstration with a few rules in place of a model; its files are in", dir)
	}
	opts := demo.Options()
	opts.Env = map[string]string{"TMPDIR": dir, "XDG_STATE_HOME": filepath.Join(dir, "state")}
	return opts, nil
}

// embedded is the agent in this process, with the key that is usual for the model's server.
func (a *Agent) embedded() (*sdk.Options, error) {
	ref, err := model.ParseRef(a.Model)
	if err != nil {
		return nil, fmt.Errorf("-model: %w", err)
	}
	var c model.Config
	if key := model.DefaultProfiles().Server(ref.URL).KeyName; key != "" {
		if os.Getenv(key) == "" {
			return nil, fmt.Errorf("the key for %s is missing: set %s", ref.URL, key)
		}
		c.Key = func(context.Context) (string, error) { return os.Getenv(key), nil }
	}
	fmt.Fprintf(os.Stderr, "the embedded agent asks %s at %s\n", ref.Model, ref.URL)
	return &sdk.Options{Backend: embedded.New(embedded.Config{Model: model.Open(ref, c, nil), Name: ref.Model})}, nil
}

// ForTest is an agent whose directory done removes.
func ForTest() (a *Agent, done func()) {
	dir, err := os.MkdirTemp("", "troupe-example-")
	if err != nil {
		log.Fatal(err)
	}
	return &Agent{Dir: dir}, func() { _ = os.RemoveAll(dir) }
}

// Terminal reports whether a person can press Ctrl-C.
func Terminal(f *os.File) bool {
	in, err := f.Stat()
	if err != nil || in.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(in, null)
}

package demo

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Main runs an example with the agent of the flag -agent, and with the arguments as its
// prompt, or else the given one. ctx ends at Ctrl-C and SIGTERM.
func Main(prompt string, run func(ctx context.Context, agent, prompt string) error) {
	agent := flag.String("agent", "scripted", "scripted, claude or qoder")
	flag.Parse()
	if flag.NArg() > 0 {
		prompt = strings.Join(flag.Args(), " ")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *agent, prompt); err != nil {
		log.Fatal(err)
	}
}

// Options returns the options of the named agent. The scripted one needs no account.
func Options(name string, scripted session.Backend) (*sdk.Options, error) {
	switch name {
	case "scripted":
		return &sdk.Options{Backend: scripted}, nil
	case "claude":
		return &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), SystemPrompt: sdk.PresetPrompt("")}, nil
	case "qoder":
		return &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()}, nil
	}
	return nil, fmt.Errorf("-agent %q is not known: use scripted, claude or qoder", name)
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

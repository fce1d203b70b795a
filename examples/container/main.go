// Command container runs the agent in a container:
//
//	go run ./examples/container -image my/claude-code   # Claude Code in docker
//	go run ./examples/container -image … -runner podman
//	go run ./examples/container                         # no image: see below
//
// The image must have the agent's program. One of the variables that -env names must
// have the agent's login. Without -image the program prints the command line instead,
// and plays the agent itself, with a fixed answer.
//
// Look for: the container has a unique name and gets the working directory, the
// session's variables and its files. It is removed at the end, even if the agent had to
// be killed.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// container describes the containers that agents run in.
type container struct {
	runner string   // docker, or a program with the same arguments
	image  string   // has the agent's program
	env    []string // names of this program's variables that the agent gets
}

// spawner starts each agent in a container.
func (in container) spawner() session.Spawner {
	return sdk.SpawnThrough(func(c *session.Command) ([]string, func(context.Context) error, error) {
		name := "agent-" + strings.ToLower(rand.Text())
		return in.commandLine(name, c), func(ctx context.Context) error {
			// After an orderly end the container is gone already; rm -f then does nothing.
			return exec.CommandContext(ctx, in.runner, "rm", "-f", name).Run()
		}, nil
	})
}

// commandLine is the command that starts the agent in a container of that name. -i
// connects stdin. There is no -t, because a terminal would echo stdin.
func (in container) commandLine(name string, c *session.Command) []string {
	dir := c.Dir
	if dir == "" {
		dir, _ = os.Getwd()
	}
	argv := []string{in.runner, "run", "--rm", "-i", "--init", "--name", name, "-v", dir + ":" + dir, "-w", dir}
	for _, kv := range c.Env {
		// Names only: the values, which may be secret, are in the runner's environment.
		key, _, _ := strings.Cut(kv, "=")
		if slices.Contains(in.env, key) || !slices.Contains(os.Environ(), kv) {
			argv = append(argv, "-e", key)
		}
	}
	for _, f := range c.Files {
		argv = append(argv, "-v", f.Placeholder()+":"+f.Placeholder()+":ro")
	}
	return append(append(argv, in.image), c.Argv()...)
}

func main() {
	if os.Getenv(agentEnv) != "" {
		agent.Main(program())
		return
	}
	runner := flag.String("runner", "docker", "docker, or a program with the same arguments")
	image := flag.String("image", "", "image with the agent's program")
	env := flag.String("env", "ANTHROPIC_API_KEY", "variables that the agent gets, separated by commas")
	flag.Parse()
	prompt := "Say where you are."
	if flag.NArg() > 0 {
		prompt = strings.Join(flag.Args(), " ")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, container{*runner, *image, strings.Split(*env, ",")}, prompt); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, in container, prompt string) error {
	opts := &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), SystemPrompt: sdk.PresetPrompt(""), Spawner: in.spawner()}
	if in.image == "" {
		in.image = "IMAGE"
		opts.Spawner = rehearsal(in)
	}
	result, err := sdk.Run(ctx, prompt, opts)
	if err != nil {
		return err
	}
	fmt.Println(result.Text())
	return nil
}

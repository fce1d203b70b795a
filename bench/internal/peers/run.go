package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/internal/command"
)

// roleEnv makes a program one of those that are measured: "troupe" or "host".
const roleEnv = "TROUPE_PEERS_ROLE"

// Play makes a program one of those that are measured, if it was started as one, and does not
// return then. It comes first in a main that calls [Run] or [InTurn].
func Play() {
	role := os.Getenv(roleEnv)
	_ = os.Unsetenv(roleEnv) // not for commands of the agent; it can fail for bad names only
	switch role {
	case "troupe":
		os.Exit(command.Main(context.Background(), os.Args[1:]))
	case "host":
		if err := host(os.Stdin, os.Stdout, os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// Config says what is measured.
type Config struct {
	Agents  string        // directory, with one for each agent
	Install bool          // the pinned versions that are missing there, from npm
	Only    []string      // names; nil: all
	Counts  []int         // sessions at once, for Run
	Rounds  int           // how often one at a time is measured
	Many    int           // further sessions of one process; twice so many of the embedded agent
	Hold    time.Duration // how long the last answer of a busy session takes
}

// Own is the name of the embedded agent, which needs nothing to be installed.
const Own = "embedded"

type bench struct {
	Config
	dir    string // temporary: homes and working directories
	sites  int    // made so far
	server *modelapi.Server
}

// start makes the temporary directory and the model.
func start(c Config) (b *bench, end func(), err error) {
	if err := adopt(); err != nil {
		return nil, nil, err
	}
	b = &bench{Config: c}
	dir, err := os.MkdirTemp("", "troupe-peers-")
	if err == nil {
		b.dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, nil, err
	}
	if b.server, err = modelapi.Start(modelapi.Config{}); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, func() {
		_ = b.server.Close()
		_ = os.RemoveAll(dir) // it is in the directory for temporary files
	}, nil
}

// wanted are the agents that are measured and that are there, and why the others are not.
func (b *bench) wanted(ctx context.Context) (found []peer, missing []string, err error) {
	peers := all()
	for name := range slices.Values(b.Only) {
		if !slices.ContainsFunc(peers, func(p peer) bool { return p.name == name }) {
			return nil, nil, fmt.Errorf("no agent is named %s", name)
		}
	}
	for _, p := range peers {
		if b.Only != nil && !slices.Contains(b.Only, p.name) {
			continue
		}
		programs, err := b.find(ctx, p, b.Install)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", p.name, err))
			continue
		}
		p.programs = programs
		found = append(found, p)
	}
	return found, missing, nil
}

// Run measures the agents one after the other, and prints tables and a verdict. It fails if the
// embedded agent is outside of a limit.
func Run(ctx context.Context, c Config) error {
	b, end, err := start(c)
	if err != nil {
		return err
	}
	defer end()
	fmt.Printf("%s, %s\n\n", time.Now().Format(time.DateOnly), condition())
	peers, missing, err := b.wanted(ctx)
	if err != nil {
		return err
	}
	var alone, shared []row
	for _, p := range peers {
		p.script(b.server, b.Hold)
		rows, err := b.measure(ctx, p)
		alone = append(alone, rows...)
		if err == nil && p.serve != nil {
			var r row
			if r, err = b.together(ctx, p); err == nil {
				shared = append(shared, r)
			}
		}
		if ctx.Err() != nil {
			missing = append(missing, "what was to come: "+context.Cause(ctx).Error())
			break
		}
		if err != nil {
			if p.own() {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			missing = append(missing, fmt.Sprintf("%s: %v", p.name, err))
		}
	}
	fmt.Print(table(atOnceHead, alone), "\n")
	if len(shared) > 0 {
		fmt.Print(table(sharedHead, shared), "\n")
	}
	for _, line := range append(missing, notMeasured...) {
		fmt.Println("not measured:", line)
	}
	return errors.Join(context.Cause(ctx), verdict(os.Stdout, alone, shared))
}

// condition says how busy the machine is.
func condition() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "the machine's load is not known"
	}
	return "load of the machine before: " + strings.Join(strings.Fields(string(load))[:3], " ")
}

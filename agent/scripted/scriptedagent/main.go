// Command scriptedagent plays a script over stdio, in the place of a real
// agent CLI:
//
//	scriptedagent [--script FILE] ARGS...
//
// ARGS are whatever the host gives the CLI whose place it takes. Without
// --script the file is named by the environment variable TROUPE_SCRIPT; without
// that it plays a demo. TROUPE_SEED seeds its identifiers.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

// scriptEnv names the environment variable that names the script.
const scriptEnv = "TROUPE_SCRIPT"

func main() {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		os.Exit(childMain(os.Args[2:]))
	}
	path, rest := scriptOf(os.Args[1:])
	os.Args = append(os.Args[:1:1], rest...)
	if path == "" {
		path = os.Getenv(scriptEnv)
	}
	options := []scripted.Option{scripted.WithSpawn(spawn)}
	if path != "" {
		script, err := scripted.Load(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		options = append(options, scripted.WithScript(script))
	}
	agent.Main(scripted.New(options...))
}

// scriptOf takes --script and its value out of args.
func scriptOf(args []string) (path string, rest []string) {
	for i := 0; i < len(args); i++ {
		if v, ok := strings.CutPrefix(args[i], "--script="); ok {
			path = v
			continue
		}
		if args[i] == "--script" && i+1 < len(args) {
			i++
			path = args[i]
			continue
		}
		rest = append(rest, args[i])
	}
	return path, rest
}

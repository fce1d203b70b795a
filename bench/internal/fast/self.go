package fast

import (
	"fmt"
	"os"
	"strings"
)

const roleEnv = "BENCH_ROLE"

// Self makes a program its own agent: with the returned variables in its
// environment, the program at path is this agent, if its main begins with
// [Play].
func Self() (path string, env map[string]string, err error) {
	path, err = os.Executable()
	return path, map[string]string{roleEnv: "agent"}, err
}

// Play is the agent, if [Self] says so; then it does not return.
func Play() {
	if os.Getenv(roleEnv) == "agent" {
		Main()
	}
}

// Main is the agent's main function. It does not return.
func Main() {
	if err := newTalk(os.Stdin, os.Stdout, os.Getenv).serve(sessionID(os.Args)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// sessionID is what the host wants to call the session; "": it does not say.
func sessionID(args []string) string {
	for i, arg := range args {
		if arg == "--session-id" && i+1 < len(args) {
			return args[i+1]
		}
		if id, ok := strings.CutPrefix(arg, "--session-id="); ok {
			return id
		}
	}
	return ""
}

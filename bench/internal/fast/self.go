package fast

import (
	"fmt"
	"os"
	"strings"
)

// RoleEnv with the value [RoleAgent] makes a program the agent.
const (
	RoleEnv   = "BENCH_ROLE"
	RoleAgent = "agent"
)

// Self makes a program its own agent: with the returned variables in its
// environment, the program at path is this agent, if its main begins with
// [Play].
func Self() (path string, env map[string]string, err error) {
	path, err = os.Executable()
	return path, map[string]string{RoleEnv: RoleAgent}, err
}

// Play is the agent, if [Self] says so; then it does not return.
func Play() {
	if os.Getenv(RoleEnv) == RoleAgent {
		Main()
	}
}

// Main is the agent's main function. It does not return.
func Main() {
	a := newTalk(os.Stdin, os.Stdout, os.Getenv)
	a.fault = os.Getenv(FaultEnv)
	if err := a.serve(sessionID(os.Args)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// sessionID is the session that the host names, or wants to resume; "": it names none.
func sessionID(args []string) string {
	for i, arg := range args {
		for _, flag := range []string{"--session-id", "--resume"} {
			if arg == flag && i+1 < len(args) {
				return args[i+1]
			}
			if id, ok := strings.CutPrefix(arg, flag+"="); ok {
				return id
			}
		}
	}
	return ""
}

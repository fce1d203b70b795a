package agent

import (
	"hash/fnv"
	"os"
	"strconv"
	"strings"
)

// SeedEnv names the environment variable that seeds an agent started by
// [Main]. Without it the seed is the process's own.
const SeedEnv = "TROUPE_SEED"

// Main is what an agent's binary calls: it serves p over the process's stdio,
// with the process's arguments, and exits as p did. SIGTERM and SIGINT reach
// the program through its port.
func Main(p Program) {
	port := newStdio(os.Stdin, os.Stdout, os.Stderr)
	port.watchSignals()
	exit := p.Serve(ProcessLaunch(), port)
	if exit.Signal != "" {
		raise(exit.Signal)
	}
	os.Exit(exit.Code)
}

// ProcessLaunch describes this very process.
func ProcessLaunch() Launch {
	dir, _ := os.Getwd() // "" is Dir's word for unknown
	l := Launch{Args: os.Args[1:], Env: os.Environ(), Dir: dir, Pid: os.Getpid()}
	l.Seed = uint64(l.Pid)
	if v := l.Getenv(SeedEnv); v != "" {
		l.Seed = seedOf(v)
	}
	return l
}

// Getenv returns the value of the variable key, "" if there is none. As in a
// process's environment, the last of several wins.
func (l Launch) Getenv(key string) string {
	for i := len(l.Env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(l.Env[i], "="); ok && k == key {
			return v
		}
	}
	return ""
}

// seedOf reads a number, or takes any other text as a seed of its own.
func seedOf(v string) uint64 {
	if n, err := strconv.ParseUint(v, 10, 64); err == nil {
		return n
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(v)) // never fails
	return h.Sum64()
}

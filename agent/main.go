package agent

import (
	"hash/fnv"
	"os"
	"strconv"
	"strings"
)

// seedEnv is the environment variable with the seed of an agent that [Main] starts: a
// number, or any text. Without it the seed is the process id.
const seedEnv = "TROUPE_SEED"

// Main is the main function of an agent's binary. It serves p over stdin and stdout,
// with the arguments of the process, and exits as p did. The port reports SIGTERM and
// SIGINT to p.
func Main(p Program) {
	port := newStdio(os.Stdin, os.Stdout, os.Stderr)
	port.watchSignals()
	exit := p.Serve(processLaunch(), port)
	if exit.Signal != "" {
		raise(exit.Signal)
	}
	os.Exit(exit.Code)
}

// processLaunch returns the [Launch] of this process.
func processLaunch() Launch {
	dir, _ := os.Getwd() // "" is Dir's word for unknown
	l := Launch{Args: os.Args[1:], Env: os.Environ(), Dir: dir, Pid: os.Getpid()}
	l.Seed = uint64(l.Pid)
	if v := l.Getenv(seedEnv); v != "" {
		l.Seed = seedOf(v)
	}
	return l
}

// Getenv returns the value of the variable key, or "" if it is not set. If Env has the
// variable several times, the last value counts.
func (l Launch) Getenv(key string) string {
	for i := len(l.Env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(l.Env[i], "="); ok && k == key {
			return v
		}
	}
	return ""
}

// seedOf reads a number, or derives a seed from any other text.
func seedOf(v string) uint64 {
	if n, err := strconv.ParseUint(v, 10, 64); err == nil {
		return n
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(v)) // never fails
	return h.Sum64()
}

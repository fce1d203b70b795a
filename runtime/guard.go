package runtime

import (
	"fmt"
	"os"

	"github.com/agent-troupe/troupe/internal/osproc"
	"github.com/agent-troupe/troupe/session"
)

// ServeGuard runs the guard and exits if a runtime started this process as one
// (Config.Guard); otherwise it returns at once. Call it first in main, before anything
// else is started.
func ServeGuard() {
	if os.Getenv(osproc.GuardEnv) == "" {
		return
	}
	if err := osproc.Guard(os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// checkGuard finds mistakes in Config.Guard.
func (cfg *Config) checkGuard() error {
	switch {
	case len(cfg.Guard) == 0:
		return nil
	case cfg.StateDir == "":
		return &session.ConfigError{Option: "Guard", Problem: "needs the records of StateDir, which is empty", Fix: "set StateDir"}
	case os.Getenv(osproc.GuardEnv) != "": // it would start itself without end
		return &session.ConfigError{Option: "Guard", Problem: "this process was started as a guard and is none", Fix: "call runtime.ServeGuard first in main"}
	}
	return nil
}

package runtime

import (
	"fmt"
	"os"

	"github.com/agent-troupe/troupe/internal/osproc"
	"github.com/agent-troupe/troupe/session"
)

// ServeGuard makes this process a guard, if a runtime has started it as one
// (Config.Guard), and does not return then. In every other process it does nothing. Call
// it first in main, before anything else is started.
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

// checkGuard finds what is wrong with Config.Guard.
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

package embedded_test

import (
	"os"
	"testing"

	"github.com/agent-troupe/troupe/runtime"
)

// unservedEnv is set where a test is a program whose main does not call runtime.ServeGuard.
const unservedEnv = "TROUPE_EMBEDDED_UNSERVED"

func TestMain(m *testing.M) {
	if os.Getenv(unservedEnv) == "" {
		runtime.ServeGuard() // confined commands begin as this program
	}
	os.Exit(atHome(m))
}

// atHome runs the tests in an empty home: each session reads the startup file of the user's
// shell, which may take a second, or wait for a lock that a killed shell has left.
func atHome(m *testing.M) int {
	home, err := os.MkdirTemp("", "troupe-home-")
	if err == nil {
		defer func() { _ = os.RemoveAll(home) }()
		err = os.Setenv("HOME", home)
	}
	if err != nil {
		panic(err)
	}
	return m.Run()
}

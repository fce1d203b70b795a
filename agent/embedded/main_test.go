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
	os.Exit(m.Run())
}

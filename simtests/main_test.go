package simtests_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/simtests"
)

func TestMain(m *testing.M) {
	runtime.ServeGuard()                           // the hosts of TestGuard are this program, and their guards, too
	if !slices.Contains(os.Args, "-test.v=true") { // the flags are parsed below
		// Thousands of warnings of sessions that are meant to fail hide the test
		// that should not have.
		slog.SetDefault(slog.New(slog.DiscardHandler))
	}
	code := simtests.Main(m)
	if dir := scriptedDir.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/agent-troupe/troupe/simtests.leftOfAScenario")); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// scriptedDir is where the scripted agent is; nil: no test has needed it.
var scriptedDir atomic.Pointer[string]

// scriptedBinary builds the scripted agent once for all tests of the package.
var scriptedBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "troupe-scriptedagent-")
	if err != nil {
		return "", err
	}
	scriptedDir.Store(&dir)
	bin := filepath.Join(dir, "scriptedagent")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, "github.com/agent-troupe/troupe/agent/scripted/scriptedagent").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the scripted agent: %w: %s", err, out)
	}
	return bin, nil
})

package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// served says that the program's main has called Serve.
var served atomic.Bool //nolint:gochecknoglobals // a fact about the program: it is set once, and never changes again

// Serves reports whether the program has called [Serve], so that it can be started again.
func Serves() bool { return served.Load() }

// Serve confines the process and executes its arguments as a command, if it was started for
// that; otherwise it returns at once. If it cannot confine the process, the command does not run:
// the process says why on its standard output, and exits with code 126.
func Serve() {
	served.Store(true)
	length := os.Getenv(Env)
	if length == "" {
		return
	}
	_, _ = fmt.Fprintln(os.Stdout, "The command was not run, since it could not be confined:", become(length))
	os.Exit(126)
}

// maxRules limits the rules, in bytes.
const maxRules = 64 << 20

// become returns only if it fails.
func become(length string) error {
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > maxRules {
		return fmt.Errorf("%s=%q is no length", Env, length)
	}
	given := make([]byte, n)
	if _, err := io.ReadFull(os.Stdin, given); err != nil { // not a byte more: the rest is the command's
		return fmt.Errorf("read the rules: %w", err)
	}
	var r Rules
	if err := json.Unmarshal(given, &r); err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	argv := os.Args[1:]
	if len(argv) == 0 {
		return errors.New("there is no command")
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, Env+"=") })
	return r.exec(argv, env)
}

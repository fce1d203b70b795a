package conformance

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Agent is a release of an agent CLI that the tests run against.
type Agent string

// The agents, by their names in agents.txt.
const (
	// Claude is the release of Claude Code the tests are written against.
	Claude Agent = "claude"
	// ClaudeOlder is one that does without much of what the later one says.
	ClaudeOlder Agent = "claude-older"
	// Qoder is qodercli.
	Qoder Agent = "qoder"
	// ACPSDK is not an agent: the npm package by which editors drive agents.
	ACPSDK Agent = "acp-sdk"
	// ACPExample is the example agent of that package.
	ACPExample Agent = "acp-example"
	// ACPAdapter is the vendor's agent of the Agent Client Protocol that drives Claude Code.
	ACPAdapter Agent = "acp-adapter"
	// Node runs ACPAdapter, which needs version 22 or later.
	Node Agent = "node"
)

// EnvMode set to "require" turns the skip of a missing CLI into a failure.
const EnvMode = "TROUPE_CONFORMANCE"

//go:embed agents.txt
var agents string

// Version is the pinned release. .ci/conformance-install installs the same one.
func (a Agent) Version() string {
	for line := range strings.Lines(agents) {
		if name, version, ok := strings.Cut(line, " "); ok && name == string(a) {
			return strings.TrimSpace(version)
		}
	}
	return ""
}

// Env is the environment variable that names a program to use instead of the
// cached one, such as TROUPE_CLAUDE_OLDER_CLI.
func (a Agent) Env() string {
	return "TROUPE_" + strings.ToUpper(strings.ReplaceAll(string(a), "-", "_")) + "_CLI"
}

// CLI returns the path of the agent's program: the one that [Agent.Env] names,
// which must exist, else the one that .ci/conformance-install put into the
// user's cache. Without that one the test is skipped, or fails when [EnvMode]
// is "require".
func (a Agent) CLI(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv(a.Env()); path != "" {
		if err := executable(path); err != nil {
			tb.Fatalf("conformance: %s: %v", a.Env(), err)
		}
		return path
	}
	path, err := a.cached()
	if err == nil {
		err = executable(path)
	}
	if err == nil {
		return path
	}
	const hint = "conformance: NOT RUN: no %s %s: %v; run .ci/conformance-install, or set %s"
	if os.Getenv(EnvMode) == "require" {
		tb.Fatalf(hint, a, a.Version(), err, a.Env())
	}
	fmt.Fprintf(os.Stderr, hint+"\n", a, a.Version(), err, a.Env())
	tb.Skipf(hint, a, a.Version(), err, a.Env())
	return ""
}

// Installed is the path of the agent's program, for programs that are not tests: the one that [Agent.Env]
// names, else the one that .ci/conformance-install put into the user's cache. It fails if the program is not there.
func (a Agent) Installed() (path string, err error) {
	if path = os.Getenv(a.Env()); path == "" {
		path, err = a.cached()
	}
	if err == nil {
		err = executable(path)
	}
	if err != nil {
		return "", fmt.Errorf("%w: run .ci/conformance-install, or set %s", err, a.Env())
	}
	return path, nil
}

// cached is where .ci/conformance-install puts the program.
func (a Agent) cached() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	at := func(name ...string) (string, error) {
		return filepath.Join(append([]string{cache, "troupe"}, name...)...), nil
	}
	switch acp := filepath.Join("node_modules", "@agentclientprotocol"); a {
	case Qoder:
		return at("qodercli", a.Version(), "bundle", "qodercli.js")
	case ACPSDK:
		return at(string(a), a.Version(), acp, "sdk", "dist", "v1", "stable", "acp.js")
	case ACPExample:
		return at(string(a), a.Version(), acp, "sdk", "dist", "examples", "agent.js")
	case ACPAdapter:
		return at(string(a), a.Version(), acp, "claude-agent-acp", "dist", "index.js")
	case Node:
		platform := runtime.GOOS + "-" + strings.ReplaceAll(runtime.GOARCH, "amd64", "x64")
		return at(string(a), a.Version(), "node_modules", "node-"+platform, "bin", "node")
	}
	return at("claude-code", a.Version(), "claude")
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return &fs.PathError{Op: "run", Path: path, Err: errors.New("not an executable file")}
	}
	return nil
}

// OfflineEnv is the whole environment ("KEY=value") Claude Code needs to run
// turns without an account and without a network: the model at modelURL, all
// state and temporary files under home, and of the caller's environment only
// PATH. Observed on Claude Code 2.1.329 and 2.1.197 with nothing but a loopback
// interface.
func OfflineEnv(modelURL, home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		// Output of background tasks goes here; the default is shared by the user.
		"TMPDIR=" + home,
		"ANTHROPIC_BASE_URL=" + modelURL,
		"ANTHROPIC_API_KEY=sk-test-offline",
		// No update check, no telemetry, and no model call beside the turn's own.
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		// Without it the CLI refuses, as root, to skip permissions.
		"IS_SANDBOX=1",
	}
}

package conformance

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// EnvCLI names the Claude Code binary to use instead of the cached one.
	EnvCLI = "TROUPE_CLAUDE_CLI"
	// EnvMode set to "require" turns the skip of a missing CLI into a failure.
	EnvMode = "TROUPE_CONFORMANCE"
)

//go:embed claude-version.txt
var claudeVersion string

// ClaudeVersion is the release of Claude Code the tests are written against.
// .ci/conformance-install installs the same one.
func ClaudeVersion() string { return strings.TrimSpace(claudeVersion) }

// ClaudeCLI returns the path of the Claude Code binary: [EnvCLI] when it is
// set, else the one that .ci/conformance-install put into the user's cache. A
// binary named by [EnvCLI] must exist. Without a cached one the test is
// skipped, or fails when [EnvMode] is "require".
func ClaudeCLI(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv(EnvCLI); path != "" {
		if err := executable(path); err != nil {
			tb.Fatalf("conformance: %s: %v", EnvCLI, err)
		}
		return path
	}
	path, err := cachedCLI()
	if err == nil {
		err = executable(path)
	}
	if err == nil {
		return path
	}
	const hint = "conformance: NOT RUN: no Claude Code %s: %v; run .ci/conformance-install, or set %s"
	if os.Getenv(EnvMode) == "require" {
		tb.Fatalf(hint, ClaudeVersion(), err, EnvCLI)
	}
	fmt.Fprintf(os.Stderr, hint+"\n", ClaudeVersion(), err, EnvCLI)
	tb.Skipf(hint, ClaudeVersion(), err, EnvCLI)
	return ""
}

// cachedCLI is where .ci/conformance-install puts the binary.
func cachedCLI() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "troupe", "claude-code", ClaudeVersion(), "claude"), nil
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
// PATH. Observed on Claude Code 2.1.329 with nothing but a loopback interface.
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

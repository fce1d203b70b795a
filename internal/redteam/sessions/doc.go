// Package sessions has no code. Its tests attack sessions: the policy, hooks, frames, secrets
// and process trees. A test that fails is a hole.
//
// Tests whose name begins with TestCLI need the real Claude Code, and skip without it:
//
//	TROUPE_CLAUDE_CLI=/path/to/claude go test ./internal/redteam/sessions -run TestCLI
//
// .ci/run makes some of them in its step conformance, and .ci/full redteam all.
package sessions

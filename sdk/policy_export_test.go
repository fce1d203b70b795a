package sdk

import "testing"

// DecideByPolicy is the CanUseTool of a session with the policy.
func DecideByPolicy(tb testing.TB, p Policy, behind CanUseTool) CanUseTool {
	tb.Helper()
	compiled, problems := compilePolicy(&Options{Policy: &p})
	if problems != nil {
		tb.Fatal(problems)
	}
	return (&gatekeeper{policy: compiled, ask: behind}).decide
}

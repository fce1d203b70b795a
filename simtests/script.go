package simtests

import "github.com/agent-troupe/troupe/agent/scripted"

// Test is the part of a *testing.T that [Script] needs.
type Test interface {
	Reporter
	Cleanup(fn func())
}

// Script returns an agent that plays s, for sdk.Options.Backend, and a record of what
// the host told it. When the test ends, each step that the agent did not reach fails
// it; see [scripted.Record.Unreached].
//
// Use one agent for one session. Options come after WithScript and WithRecord; an Effect
// or a History can be given with them.
func Script(t Test, s *scripted.Script, o ...scripted.Option) (*scripted.Agent, *scripted.Record) {
	t.Helper()
	r := &scripted.Record{}
	a := scripted.New(append([]scripted.Option{scripted.WithScript(s), scripted.WithRecord(r)}, o...)...)
	t.Cleanup(func() {
		t.Helper()
		if len(r.Requests()) == 0 {
			t.Errorf("simtests: the scripted agent was never started")
			return
		}
		for _, step := range r.Unreached() {
			t.Errorf("simtests: the scripted agent did not reach %s", step)
		}
	})
	return a, r
}

package embedded_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
)

// The size of a request decides what a turn costs. A first one has the system prompt, the schemas
// of all tools that are there without an option, and a prompt of ten words.
func TestTheFirstRequestIsSmall(t *testing.T) {
	t.Parallel()
	const limit = 8192
	for name, m := range map[string]func(*modeltest.Server) model.Model{
		"messages":    func(s *modeltest.Server) model.Model { return s.Anthropic(model.Config{}) },
		"completions": func(s *modeltest.Server) model.Model { return s.OpenAI(model.Config{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script(t, modeltest.Say(modeltest.Text("done")))
			s.o.Backend = embedded.New(embedded.Config{Model: m(s.server), Name: "claude-sonnet-4-5"})
			s.o.PermissionMode, s.o.AllowDangerouslySkipPermissions = "", false
			s.o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.Allow(), nil
			}
			ask(t, open(t, s.o), "Please find out why the test of the parser fails.")
			r := s.server.Requests()[0]
			assert.Contains(t, r.Tools, "AskUserQuestion", "somebody answers")
			assert.LessOrEqual(t, len(r.Body), limit)
			t.Logf("%d bytes", len(r.Body))
		})
	}
}

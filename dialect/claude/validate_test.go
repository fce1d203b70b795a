package claude_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func TestImpossibleOnClaude(t *testing.T) {
	t.Parallel()
	tools := func(tool session.MCPToolPolicy) dialect.Input {
		return dialect.Input{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c", Tools: []session.MCPToolPolicy{tool}}}}, Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{{Name: "h", Tools: []session.MCPToolPolicy{tool}}}}}
	}
	for name, c := range map[string]struct {
		options dialect.Input
		want    []string
	}{
		"session id":       {dialect.Input{Options: session.Options{SessionID: "abc"}}, []string{"SessionID"}},
		"odd uuid":         {dialect.Input{Options: session.Options{SessionID: "zaaaaaaa-1111-4111-8111-111111111111"}}, []string{"SessionID"}},
		"resumed by id":    {dialect.Input{Options: session.Options{SessionID: uuidD, Resume: uuidA}}, []string{"SessionID"}},
		"continued by id":  {dialect.Input{Options: session.Options{SessionID: uuidD, Continue: true}}, []string{"SessionID"}},
		"forked by id":     {dialect.Input{Options: session.Options{SessionID: uuidD, Continue: true, ForkSession: true}}, nil},
		"prompts":          {dialect.Input{Options: session.Options{PermissionPrompts: "me"}}, []string{"PermissionPrompts"}},
		"dialogs":          {dialect.Input{Options: session.Options{SupportedDialogKinds: []string{"k"}}}, []string{"SupportedDialogKinds"}},
		"preview":          {dialect.Input{Options: session.Options{ToolConfig: &session.ToolConfig{AskUserQuestion: session.AskUserQuestionConfig{PreviewFormat: "pdf"}}}}, []string{"ToolConfig.AskUserQuestion.PreviewFormat"}},
		"Qoder's yolo":     {dialect.Input{Options: session.Options{PermissionMode: protocol.ModeYolo, AllowDangerouslySkipPermissions: true}}, []string{"PermissionMode"}},
		"Qoder's exposure": {tools(session.MCPToolPolicy{Name: "t", ExposedName: "x"}), []string{`MCPServers["s"].Tools[0].ExposedName`, "SDKMCPServers[0].Tools[0].ExposedName"}},
		"Qoder's loading":  {tools(session.MCPToolPolicy{Name: "t", AlwaysLoad: true}), []string{`MCPServers["s"].Tools[0].AlwaysLoad`, "SDKMCPServers[0].Tools[0].AlwaysLoad"}},
	} {
		_, err := claude.New().Validate(&c.options)
		var got []string
		for _, e := range session.ConfigErrors(err) {
			got = append(got, e.Option)
			assert.NotEmpty(t, e.Fix, name)
		}
		assert.Equal(t, c.want, got, name)
	}
}

func TestTraits(t *testing.T) {
	t.Parallel()
	traits := claude.New().Traits()
	assert.Positive(t, traits.EOFGrace)
	assert.Positive(t, traits.TermGrace)
	assert.Positive(t, traits.InterruptGrace)
	assert.Equal(t, "claude", claude.New().Name())
	assert.Empty(t, claude.New().Capability(protocol.InterruptRequest{}))
	assert.Empty(t, claude.New().AfterInitialize(&dialect.Input{}))
}

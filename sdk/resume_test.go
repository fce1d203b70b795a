package sdk_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// An agent that begins another session than it was asked for says nothing of it;
// the host does.
func TestASessionThatIsNotTheOneAskedFor(t *testing.T) {
	t.Parallel()
	const asked, other = "3f2b8c1e-7a54-4d0b-9a6e-1c2d3e4f5a6b", "00000000-1111-4222-8333-444444444444"
	for name, c := range map[string]struct {
		options sdk.Options
		id      string // that the agent names
		warns   string
	}{
		"resumed":               {sdk.Options{Resume: asked}, asked, ""},
		"resumed, in capitals":  {sdk.Options{Resume: asked}, "3F2B8C1E-7A54-4D0B-9A6E-1C2D3E4F5A6B", ""},
		"began anew":            {sdk.Options{Resume: asked}, other, "option Resume: the agent is in session " + other + ", not in " + asked + "; what was said there may be missing"},
		"forked":                {sdk.Options{Resume: asked, ForkSession: true}, other, ""},
		"did not fork":          {sdk.Options{Resume: asked, ForkSession: true}, asked, "option ForkSession: the agent goes on with session " + asked + " itself, not with a copy of it"},
		"named":                 {sdk.Options{SessionID: asked}, asked, ""},
		"named otherwise":       {sdk.Options{SessionID: asked}, other, "option SessionID: the agent calls the session " + other + ", not " + asked},
		"forked under a name":   {sdk.Options{Resume: asked, ForkSession: true, SessionID: other}, other, ""},
		"continued":             {sdk.Options{Continue: true}, other, ""},
		"nothing was asked for": {sdk.Options{}, other, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				o := c.options
				o.Runtime = w.rt
				o.Backend = sdk.InMemory(renamed(c.id), agent.Claude)
				l := record(&o)
				_, err := sdk.Run(w.Context(), "hi", &o)
				require.NoError(w, err)
				var warned []string
				for _, e := range w.events(l) {
					if warning, ok := e.(*session.WarningIssued); ok {
						warned = append(warned, warning.Problem)
					}
				}
				if c.warns == "" {
					assert.Empty(w, warned)
				} else {
					assert.Equal(w, []string{c.warns}, warned)
				}
			})
		})
	}
}

// renamed is an agent whose session has this id at first, and another soon.
type renamed string

func (renamed) AgentName() string { return "renamed" }

func (r renamed) Serve(_ agent.Launch, p agent.Port) agent.Exit {
	for {
		line, err := p.Next(-1)
		if err != nil {
			return agent.Exit{}
		}
		f, err := protocol.ParseFrame(line)
		if err != nil {
			return agent.Exit{Code: 1}
		}
		var out []byte
		switch f.Type {
		case protocol.TypeControlRequest:
			out, err = protocol.AppendControlSuccess(nil, f.RequestID, []byte("{}"))
		case "user":
			out = fmt.Appendf(nil, `{"type":"system","subtype":"init","session_id":%q}
{"type":"system","subtype":"init","session_id":"11111111-1111-4222-8333-444444444444"}
{"type":"result","subtype":"success","is_error":false,"result":"done"}
`, string(r))
		}
		if err != nil || p.Write(out) != nil {
			return agent.Exit{Code: 1}
		}
	}
}

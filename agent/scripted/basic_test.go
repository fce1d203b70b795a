package scripted_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
)

func TestText(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("hi"))
	p.closing(1)
	exit := p.serve(`
turns:
- steps:
  - text: hello ${prompt}
`)
	require.Equal(t, agent.Exit{}, exit)
	require.Equal(t, []string{
		"control_response success", "system/init", "assistant text", "result/success",
	}, kinds(p.frames))
	require.Equal(t, "hello hi", p.frames[3].str("result"))
	t.Log(p.out.String())
}

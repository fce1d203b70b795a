package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/protocol"
)

func TestMCPToolName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, tool, want string }{
		{"srv", "echo", "mcp__srv__echo"},
		{"my srv", "do it", "mcp__my_srv__do_it"},
		{"my.srv ü", "do/thing", "mcp__my_srv____do_thing"},
		{"a-b", "e😀f", "mcp__a-b__e__f"},
		{"a", "\xff", "mcp__a___"},
	} {
		assert.Equal(t, c.want, protocol.MCPToolName(c.server, c.tool))
	}
}

// The values are those of the agent's own function.
func TestMCPNameQoder(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a b": "a_b", "a__b": "a_b", "_x_": "x", "__a__": "a", "w.x/y": "w_x_y", "s-1": "s-1", "...": "", "": "",
		"ü-T": "-T_7a2f7cd2be46", "数据": "u_5440f7424f28", "x😀y": "x_y_d506f8eb09b3",
	} {
		assert.Equal(t, want, protocol.MCPNameQoder(name), name)
	}
}

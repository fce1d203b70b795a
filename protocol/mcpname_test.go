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

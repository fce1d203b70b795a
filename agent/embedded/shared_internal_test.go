package embedded

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// Sessions with the same tools have one list, and no other one.
func TestToolListsAreShared(t *testing.T) {
	t.Parallel()
	s := (&shared{}).made()
	one, other := s.boxes[0].tools[0], s.boxes[1].tools[0]
	mcp := func(tool string) []agent.MCPToolInfo {
		return []agent.MCPToolInfo{{Server: "srv", Name: "echo", Tool: []byte(tool)}}
	}
	lists := []toolList{
		{first: one, names: []string{"Bash", "Read"}},
		{first: other, names: []string{"Bash", "Read"}},
		{first: one, names: []string{"Bash"}},
		{first: one, names: []string{"Bash", "Read"}, mcp: mcp(`{"name":"echo"}`)},
		{first: one, names: []string{"Bash", "Read"}, mcp: mcp(`{"name":"echo","description":"x"}`)},
	}
	encoded := 0
	for range 2 {
		for i, l := range lists {
			got := s.tools(l, func() []byte { encoded++; return fmt.Append(nil, i) })
			assert.Equal(t, fmt.Sprint(i), string(got))
		}
	}
	assert.Equal(t, len(lists), encoded, "each is encoded once")
	for i := range 3 * maxShared {
		s.tools(toolList{names: []string{fmt.Sprint(i)}}, func() []byte { return []byte("x") })
	}
	assert.LessOrEqual(t, len(s.lists), maxShared)
}

// Rules are compiled once, and hold in the directory of each session.
func TestPoliciesAreShared(t *testing.T) {
	t.Parallel()
	var s shared
	at := func(cwd string, allow, deny []string) *policy.Policy {
		return s.policy(policy.Rules{Allow: allow, Deny: deny, Cwd: cwd, Home: "/home/u"})
	}
	read := func(path string) policy.Call {
		return policy.Call{Tool: "Read", Input: fmt.Appendf(nil, `{"file_path":%q}`, path), Cwd: "/"}
	}
	allow, deny := []string{"Read(./**)"}, []string{"Read(./secret/**)"}
	for _, cwd := range []string{"/a", "/b", "/a"} {
		p := at(cwd, allow, deny)
		require.NotNil(t, p)
		for _, other := range []string{"/a", "/b"} {
			want := protocol.BehaviorAsk
			if cwd == other {
				want = protocol.BehaviorAllow
			}
			assert.Equal(t, want, p.Decide(read(other+"/x")), "%s in %s", other, cwd)
			if cwd == other {
				assert.Equal(t, protocol.BehaviorDeny, p.Decide(read(other+"/secret/x")))
			}
		}
	}
	assert.Len(t, s.policies, 1)
	assert.Equal(t, protocol.BehaviorAllow, at("/a", allow, nil).Decide(read("/a/secret/x")), "other rules are another policy")
	assert.Equal(t, protocol.BehaviorAsk, at("/a", nil, allow[:0]).Decide(read("/a/x")))
	assert.Nil(t, at("/a", []string{"Bash(a;b)"}, nil), "rules with a mistake are none")
	for i := range 3 * maxShared {
		at("/a", []string{fmt.Sprintf("Bash(x%d)", i)}, nil)
	}
	assert.LessOrEqual(t, len(s.policies), maxShared)
}

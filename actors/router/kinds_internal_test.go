package router

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// unanswered are the subtypes that protocol decodes and that are of KindOther on
// purpose: the agent gets an error for them.
var unanswered []string

func TestTheRegistryOfKinds(t *testing.T) {
	t.Parallel()
	o := &session.Options{}
	deps := &Deps{Dialect: claude.New(), Options: o, MCP: mcp.NewBridge(mcp.BridgeConfig{Options: o})}
	actors, subtypes := map[string]bool{}, map[string]session.Kind{}
	for i, spec := range entries {
		kind := session.Kind(i)
		require.NotEmpty(t, spec.Actor, "%v has no entry", kind)
		assert.False(t, actors[spec.Actor], "two kinds have an actor called %s", spec.Actor)
		actors[spec.Actor] = true
		assert.Equal(t, kind, KindOfActor(spec.Actor))

		all := slices.Concat(spec.People, spec.Others)
		require.NotEmpty(t, all, "%v", kind)
		for j, subtype := range all {
			assert.NotContains(t, subtypes, subtype, "%s is of two kinds", subtype)
			subtypes[subtype] = kind
			got, person := KindOf(subtype)
			assert.Equal(t, kind, got, subtype)
			assert.Equal(t, j < len(spec.People), person, subtype)

			require.NotNil(t, spec.Denial, "%v", kind)
			response, errText := deps.Denial(kind, asked(t, `{"subtype":"`+subtype+`"}`), "why")
			assert.NotEqual(t, len(response) > 0, errText != "", "%s: a denial is a response or an error", subtype)
		}
		require.NotNil(t, spec.Prepare, "%v", kind)
		assert.NotNil(t, spec.Prepare(deps), "%v", kind)
	}

	decoded := agentSubtypes(t)
	require.NotEmpty(t, decoded)
	for _, subtype := range decoded {
		kind, _ := KindOf(subtype)
		assert.Equal(t, slices.Contains(unanswered, subtype), kind == session.KindOther, "%s is of kind %v", subtype, kind)
		delete(subtypes, subtype)
	}
	assert.Empty(t, subtypes, "protocol does not decode them")
}

// asked is a request of the agent, by its inner object.
func asked(t *testing.T, inner string) protocol.Frame {
	t.Helper()
	f, err := protocol.ParseFrame([]byte(`{"type":"control_request","request_id":"r","request":` + inner + `}`))
	require.NoError(t, err)
	return f
}

// TestGatesRefuseNothing: an agent may take an error for an allow.
func TestGatesRefuseNothing(t *testing.T) {
	t.Parallel()
	for i, spec := range entries {
		kind := session.Kind(i)
		gate := kind == session.KindPermission || kind == session.KindHook
		assert.Equal(t, !gate, spec.Refuses, "%v", kind)
	}
}

// TestWhoWaitsForAPerson: the session is in StateAwaitingHost while one of these
// requests is open.
func TestWhoWaitsForAPerson(t *testing.T) {
	t.Parallel()
	var people []string
	for _, spec := range entries {
		people = append(people, spec.People...)
	}
	assert.ElementsMatch(t, []string{"can_use_tool", "elicitation", "elicitation_response", "request_user_dialog"}, people)
}

// agentSubtypes returns the subtypes of the agent's requests that protocol decodes:
// what the Subtype methods of its AgentRequests return.
func agentSubtypes(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("../../protocol/*.go")
	require.NoError(t, err)
	requests, subtypes := map[string]bool{}, map[string]string{} // by receiver
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			receiver := types.ExprString(f.Recv.List[0].Type)
			switch f.Name.Name {
			case "isAgentRequest":
				requests[receiver] = true
			case "Subtype":
				if text, ok := f.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit); ok {
					subtypes[receiver], err = strconv.Unquote(text.Value)
					require.NoError(t, err)
				}
			}
		}
	}
	delete(requests, "*UnknownAgentRequest")
	for receiver := range requests {
		require.NotEmpty(t, subtypes[receiver], receiver)
		req, _ := protocol.DecodeAgentRequest(asked(t, `{"subtype":"`+subtypes[receiver]+`"}`))
		_, unknown := req.(*protocol.UnknownAgentRequest)
		require.False(t, unknown, "%s is not decoded", subtypes[receiver])
		all = append(all, subtypes[receiver])
	}
	return all
}

package actors

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

	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// unanswered are the subtypes that protocol decodes and that are of KindOther on
// purpose: the agent gets an error for them.
var unanswered []string

func TestTheRegistryOfKinds(t *testing.T) {
	t.Parallel()
	core, r := newCore(t, claude.New()), rulesOf(claude.New())
	actors, subtypes := map[string]bool{}, map[string]session.Kind{}
	for i, spec := range kinds {
		kind := session.Kind(i)
		require.NotEmpty(t, spec.actor, "%v has no entry", kind)
		assert.False(t, actors[spec.actor], "two kinds have an actor called %s", spec.actor)
		actors[spec.actor] = true
		assert.Equal(t, kind, kindOfActor(spec.actor))

		all := slices.Concat(spec.people, spec.others)
		require.NotEmpty(t, all, "%v", kind)
		for j, subtype := range all {
			assert.NotContains(t, subtypes, subtype, "%s is of two kinds", subtype)
			subtypes[subtype] = kind
			got, person := r.KindOf(subtype)
			assert.Equal(t, kind, got, subtype)
			assert.Equal(t, j < len(spec.people), person, subtype)

			require.NotNil(t, spec.denial, "%v", kind)
			response, errText := r.Denial(kind, asked(t, `{"subtype":"`+subtype+`"}`), "why")
			assert.NotEqual(t, len(response) > 0, errText != "", "%s: a denial is a response or an error", subtype)
		}
		require.NotNil(t, spec.prepare, "%v", kind)
		actor := core.newCallback(kind)
		assert.NotNil(t, actor.Prepare, "%v", kind)
		assert.Equal(t, kind, actor.Kind)
		assert.Equal(t, spec.refuses, actor.Refuses, "%v", kind)
	}

	decoded := agentSubtypes(t)
	require.NotEmpty(t, decoded)
	for _, subtype := range decoded {
		kind, _ := r.KindOf(subtype)
		assert.Equal(t, slices.Contains(unanswered, subtype), kind == session.KindOther, "%s is of kind %v", subtype, kind)
		delete(subtypes, subtype)
	}
	assert.Empty(t, subtypes, "protocol does not decode them")
}

// TestGatesRefuseNothing: an agent may take an error for an allow.
func TestGatesRefuseNothing(t *testing.T) {
	t.Parallel()
	for i, spec := range kinds {
		kind := session.Kind(i)
		gate := kind == session.KindPermission || kind == session.KindHook
		assert.Equal(t, !gate, spec.refuses, "%v", kind)
	}
}

// TestWhoWaitsForAPerson: the session is in StateAwaitingHost while one of these
// requests is open.
func TestWhoWaitsForAPerson(t *testing.T) {
	t.Parallel()
	var people []string
	for _, spec := range kinds {
		people = append(people, spec.people...)
	}
	assert.ElementsMatch(t, []string{"can_use_tool", "elicitation", "elicitation_response", "request_user_dialog"}, people)
}

// agentSubtypes returns the subtypes of the agent's requests that protocol decodes:
// what the Subtype methods of its AgentRequests return.
func agentSubtypes(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("../protocol/*.go")
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

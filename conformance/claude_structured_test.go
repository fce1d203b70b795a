//go:build conformance

package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

type structuredAnswer struct {
	Answer string `json:"answer" jsonschema:"the answer in words"`
}

func checkStructuredOutput(t *testing.T, rel release) {
	r := rel.rig(t)
	v, result, err := sdk.RunAs[structuredAnswer](r.ctx, "answer [[scn:structured]]", r.options())
	require.NoError(t, err)
	assert.Equal(t, structuredAnswer{"42"}, v)
	assert.JSONEq(t, `{"answer":"42"}`, string(result.StructuredOutput))
	r.nothingRuns()
}

func TestStructuredOutputThatWasWrongAtFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v, _, err := sdk.RunAs[structuredAnswer](r.ctx, "answer [[scn:structuredbad]]", r.options())
	require.NoError(t, err)
	assert.Equal(t, structuredAnswer{"fixed"}, v)
	told := r.modelSaw("structuredbad").ToolResults()
	require.Len(t, told, 1)
	assert.True(t, told[0].IsError, "the agent sent the first one back")
	r.nothingRuns()
}

func TestStructuredOutputThatNeverComes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, result, err := sdk.RunAs[structuredAnswer](r.ctx, "answer [[scn:text]]", r.options())
	var missing *session.StructuredOutputError
	require.ErrorAs(t, err, &missing)
	assert.Same(t, result, missing.Result)
	assert.Nil(t, result.StructuredOutput)
	assert.True(t, sdk.Retryable(err))
	r.nothingRuns()
}

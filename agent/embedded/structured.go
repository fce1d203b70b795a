package embedded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/jsonshape"
	"github.com/agent-troupe/troupe/protocol"
)

// Structured output, as Claude Code 2.1.329 has it (observed): the model gives it by calling a
// tool whose schema is the host's, and the turn ends with that call. So it needs nothing of the
// endpoint but tools.

const (
	outputTool = "StructuredOutput"
	misfitText = "Output does not match required schema: "
	outputText = "Structured output provided successfully"
	noOutput   = "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request. Call this tool now."
)

// maxMisfits are the outputs of a turn that may not fit; the last one of them ends it.
const maxMisfits = 5

// shaped is what a turn knows of its structured output.
type shaped struct {
	given   bool  // the last answer has given one
	asked   bool  // the model was asked for it
	misfits int   // outputs that did not fit
	wrong   error // why the last one of them did not
}

// structuredOutput is the tool StructuredOutput.
func structuredOutput(shape *jsonshape.Schema) *tool {
	return &tool{
		name:  outputTool,
		about: "Gives the answer to the user's request, at its end and once: the user sees nothing else.",
		free:  true,
		shape: shape,
		open:  true,
	}
}

// takeOutput is a call of that tool. raw is the input as the model wrote it, asked the same, and in as
// hooks have left it.
func (t *talk) takeOutput(l *agent.Lane, shape *jsonshape.Schema, raw json.RawMessage, asked, in agent.Object) (agent.ToolResult, error) {
	if !reflect.DeepEqual(asked, in) {
		var err error
		if raw, err = protocol.Marshal(in); err != nil {
			return agent.ToolResult{}, err
		}
	}
	fit, err := shape.Check(raw)
	if err != nil {
		t.output.misfits++
		t.output.wrong = err
		return failure("%s%v", misfitText, err), nil
	}
	var line bytes.Buffer
	if err := json.Compact(&line, fit.Given); err != nil {
		return agent.ToolResult{}, err
	}
	t.output.given = true
	l.Answer(line.Bytes())
	return agent.ToolResult{Content: outputText}, nil
}

// needsOutput adds the tool for the structured output that the host wants.
func (t *talk) needsOutput(l *agent.Lane) error {
	raw := l.OutputSchema()
	if raw == nil || slices.ContainsFunc(t.box, func(own *tool) bool { return own.shape != nil }) {
		return nil
	}
	shape, err := jsonshape.Parse(raw)
	if err != nil { // the options were checked: the host is another one
		return fmt.Errorf("the schema of the structured output: %w", err)
	}
	t.box = append(slices.Clip(t.box), structuredOutput(shape))
	return nil
}

// gave reports whether the calls of an answer have ended the turn: with the structured output, or
// since too many outputs did not fit.
func (t *talk) gave() (ends bool, err error) {
	switch {
	case t.output.given:
		t.output = shaped{asked: true}
		return true, nil
	case t.output.misfits >= maxMisfits:
		return true, t.turnOf.Finish(agent.Result{
			Subtype: protocol.ResultErrorMaxStructuredRetry, StopReason: "tool_use", TerminalReason: "structured_output_retry_exhausted",
			Errors: []string{fmt.Sprintf("Failed to provide valid structured output after %d attempts — last StructuredOutput error: %s%v", maxMisfits, misfitText, t.output.wrong)},
		})
	}
	return false, nil
}

// asksOutput is the text for a model that has ended without its structured output; "" if it has given
// it, if it was asked before, and in a turn that a task has started, whose result has no reader. Nor is
// it asked for behind the result of a turn, or of a sub-agent.
func (t *talk) asksOutput(l *agent.Lane) string {
	if t.output.asked || t.turnOf == nil || t.turnOf.Task() != nil || !slices.Contains(l.Tools(), outputTool) {
		return ""
	}
	t.output.asked = true
	return noOutput
}

// shapeProblem is why a schema cannot be that of a structured output, or nil.
func shapeProblem(schema json.RawMessage) error {
	var o map[string]json.RawMessage
	if protocol.Unmarshal(schema, &o) == nil {
		_, err := jsonshape.Parse(schema)
		return err
	}
	return nil // the dialect reports it
}

package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

type town struct {
	Name   string `json:"name"`
	People int64  `json:"people"`
}

// gives is an answer with structured output.
func gives(v any) *modeltest.Answer { return modeltest.Say(modeltest.Call("StructuredOutput", v)) }

func towns(t *testing.T, openai bool, answers ...*modeltest.Answer) (*modeltest.Server, *sdk.Options) {
	t.Helper()
	s := &modeltest.Server{Script: func(r *modeltest.Request) *modeltest.Answer {
		if r.N > len(answers) {
			return nil
		}
		return answers[r.N-1]
	}}
	m := s.Anthropic(model.Config{})
	if openai {
		m = s.OpenAI(model.Config{})
	}
	return s, &sdk.Options{Backend: embedded.New(embedded.Config{Model: m, Name: "m", Dir: t.TempDir()}), Cwd: t.TempDir(), CleanEnv: true}
}

func good() map[string]any { return map[string]any{"name": "Bonn", "people": 330_000} }

func bad() map[string]any { return map[string]any{"name": "Bonn", "people": "many"} }

const manyPeople = "Output does not match required schema: people: expected integer, got \"many\""

// The turn ends with the output. One that does not fit goes back to the model, as often as five times
// in a turn; and a model that ends without it is asked once. RunAs asks again after that.
func TestStructuredOutput(t *testing.T) {
	t.Parallel()
	said := func(text string) *modeltest.Answer { return modeltest.Say(modeltest.Text(text)) }
	for name, c := range map[string]struct {
		answers  []*modeltest.Answer
		repairs  int
		requests int
		wrong    string // the error; "": there is an answer
	}{
		"at once":         {answers: []*modeltest.Answer{gives(good())}, requests: 1},
		"after work":      {answers: []*modeltest.Answer{modeltest.Say(modeltest.Call("Glob", map[string]any{"pattern": "*"})), gives(good())}, requests: 2},
		"beside work":     {answers: []*modeltest.Answer{modeltest.Say(modeltest.Call("StructuredOutput", good()), modeltest.Call("Glob", map[string]any{"pattern": "*"}))}, requests: 1},
		"wrong at first":  {answers: []*modeltest.Answer{gives(bad()), gives(bad()), gives(bad()), gives(bad()), gives(good())}, requests: 5},
		"asked for":       {answers: []*modeltest.Answer{said("Bonn."), gives(good())}, requests: 2},
		"another turn":    {answers: []*modeltest.Answer{said("Bonn."), said("Bonn!"), gives(good())}, requests: 3},
		"never":           {answers: []*modeltest.Answer{said("Bonn."), said("Bonn!"), said("a"), said("b")}, requests: 4, wrong: "the model returned no structured output"},
		"without repairs": {answers: []*modeltest.Answer{said("Bonn."), said("Bonn!")}, repairs: -1, requests: 2, wrong: "the model returned no structured output"},
		"always wrong": {
			answers: []*modeltest.Answer{gives(bad()), gives(bad()), gives(bad()), gives(bad()), gives(bad())}, requests: 5,
			wrong: "Failed to provide valid structured output after 5 attempts — last StructuredOutput error: Output does not match required schema: people: expected integer, got \"many\"",
		},
	} {
		for _, openai := range []bool{false, true} {
			t.Run(fmt.Sprint(name, openai), func(t *testing.T) {
				t.Parallel()
				s, o := towns(t, openai, c.answers...)
				o.OutputRepairs = c.repairs
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				v, r, err := sdk.RunAs[town](ctx, "Which town?", o)
				all := s.Requests()
				assert.Len(t, all, c.requests)
				assert.Contains(t, all[0].Tools, "StructuredOutput")
				for _, r := range all[1:] {
					for _, b := range r.Results() {
						assert.Contains(t, []string{manyPeople, "No files found"}, b.Text)
					}
				}
				if c.wrong != "" {
					var wrong *session.StructuredOutputError
					require.ErrorAs(t, err, &wrong)
					require.ErrorContains(t, err, c.wrong)
					assert.Nil(t, r.StructuredOutput)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, town{"Bonn", 330_000}, v)
				assert.JSONEq(t, `{"name":"Bonn","people":330000}`, r.Result)
				assert.Equal(t, "tool_use", r.StopReason)
				assert.False(t, r.IsError)
			})
		}
	}
}

// An output is what the model has written, to the last digit, unless a hook has changed it.
func TestStructuredOutputIsKept(t *testing.T) {
	t.Parallel()
	for _, changed := range []bool{false, true} {
		call := modeltest.Call("StructuredOutput", good())
		call.Input = json.RawMessage("{\"people\": 9007199254740993,\n \"name\": \"<Bonn>\"}")
		_, o := towns(t, false, modeltest.Say(call))
		if changed {
			o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				return sdk.PreToolUseOutput{UpdatedInput: json.RawMessage(`{"name":"Rome","people":1}`)}, nil
			})}
		}
		v, r, err := sdk.RunAs[town](t.Context(), "Which town?", o)
		require.NoError(t, err)
		if changed {
			assert.Equal(t, town{"Rome", 1}, v)
			continue
		}
		assert.Equal(t, town{"<Bonn>", 9007199254740993}, v)
		assert.Equal(t, `{"people":9007199254740993,"name":"<Bonn>"}`, r.Result) //nolint:testifylint // to the byte
	}
}

// Each turn of a session has its output, and each session of a backend its schema.
func TestStructuredOutputOfSessions(t *testing.T) {
	t.Parallel()
	s, o := towns(t, false, gives(good()), modeltest.Say(modeltest.Text("Rome.")), gives(bad()), gives(map[string]any{"name": "Rome", "people": 3}))
	o.OutputRepairs = -1 // each turn begins anew by itself
	var err error
	o.OutputFormat, err = sdk.OutputFormatOf[town]()
	require.NoError(t, err)
	c := open(t, o)
	for _, want := range []town{{"Bonn", 330_000}, {"Rome", 3}} {
		v, _, err := sdk.AskAs[town](t.Context(), c, "Which?")
		require.NoError(t, err)
		assert.Equal(t, want, v)
	}
	other := *o
	other.OutputFormat = sdk.JSONSchema(json.RawMessage(`{"type":"object","properties":{"river":{"type":"string"}}}`))
	ask(t, open(t, &other), "And?")
	all := s.Requests()
	last := string(all[len(all)-1].Body)
	assert.Contains(t, last, `"river"`)
	assert.NotContains(t, last, `"people"`)
	other.OutputFormat = nil
	ask(t, open(t, &other), "And?")
	all = s.Requests()
	assert.NotContains(t, all[len(all)-1].Tools, "StructuredOutput")
}

// A schema that the agent cannot check is an error before anything starts.
func TestSchemasThatCannotBeChecked(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"string"}`: "is not \"object\"", `{"type":"object","properties":{"a":{"$ref":"https://a.test/x"}}}`: "outside of the schema",
		`{"type":"object","$schema":"http://json-schema.org/draft-04/schema#"}`: "not supported", `{"type":"object","properties":{"a":{"pattern":"("}}}`: "pattern",
	} {
		_, o := towns(t, false)
		o.OutputFormat = sdk.JSONSchema(json.RawMessage(schema))
		err := sdk.NewClient(o).Connect(t.Context())
		var wrong *sdk.ConfigError
		require.ErrorAs(t, err, &wrong, schema)
		assert.Contains(t, strings.ToLower(err.Error()), want, schema)
	}
}

// A Stop hook that blocks has the model continue. The last output of the turn counts, and the first
// one is not lost.
func TestStructuredOutputAndStopHooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second *modeltest.Answer
		want   town
	}{
		"another output": {gives(map[string]any{"name": "Rome", "people": 3}), town{"Rome", 3}},
		"a text":         {modeltest.Say(modeltest.Text("It is checked.")), town{"Bonn", 330_000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := towns(t, false, gives(good()), c.second)
			asked := 0
			o.Hooks = []sdk.Hook{sdk.OnStop(func(context.Context, *protocol.StopInput) (sdk.FeedbackOutput, error) {
				if asked++; asked == 1 {
					return sdk.FeedbackOutput{Decision: protocol.DecisionBlock, Reason: "Check it."}, nil
				}
				return sdk.FeedbackOutput{}, nil
			})}
			v, r, err := sdk.RunAs[town](t.Context(), "Which town?", o)
			require.NoError(t, err)
			assert.Equal(t, c.want, v)
			assert.JSONEq(t, string(r.StructuredOutput), r.Result)
			assert.Len(t, s.Requests(), 2)
			assert.Equal(t, 2, asked)
		})
	}
}

package scripted_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

func TestParse(t *testing.T) {
	t.Parallel()
	s := parse(t, `
dialect: qoder
partials: true
turns:
- when: hello
  steps:
  - text: hi
  - delay: 250ms
  - partial: {text: abc, chunk: 2, pause: 10ms}
  - tool_use: {name: Bash, input: {n: 1, list: [a, {b: c}]}, takes: 1m30s}
  - parallel:
    - mcp_call: {server: s, tool: t}
    - shell: {command: sleep}
misbehave:
  stderr: 2KiB
  die: {at: mid-assistant, signal: KILL}
`)
	yes := true
	require.Equal(t, &scripted.Script{
		Dialect: agent.Qoder, Partials: &yes,
		Turns: []scripted.Turn{{When: "hello", Steps: scripted.Steps{
			scripted.Text("hi"),
			scripted.Delay(250 * time.Millisecond),
			&scripted.Partial{Text: "abc", Chunk: 2, Pause: 10 * time.Millisecond},
			&scripted.ToolUse{
				Name: "Bash", Takes: 90 * time.Second,
				Input: map[string]any{"n": uint64(1), "list": []any{"a", map[string]any{"b": "c"}}},
			},
			scripted.Parallel{&scripted.MCPCall{Server: "s", Tool: "t"}, &scripted.Shell{Command: "sleep"}},
		}}},
		Misbehave: scripted.Misbehaviour{Stderr: 2048, Die: &scripted.Die{At: agent.MidAssistant, Signal: "KILL"}},
	}, s)
	require.Equal(t, &scripted.Script{}, parse(t, ""))
	require.Equal(t, &scripted.Script{}, parse(t, "# nothing\n"))
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		yaml         string
		line, column int
		problem      string
	}{
		{"turnz: []\n", 1, 1, `unknown field "turnz"`},
		{"turns:\n- stepz: []\n", 2, 3, `unknown field "stepz"`},
		{"turns:\n- steps:\n  - shout: hi\n", 3, 5, `unknown step "shout"`},
		{"turns:\n- steps:\n  - text: a\n    delay: 1s\n", 3, 5, "one key"},
		{"turns:\n- steps:\n  - hello\n", 3, 5, "one key"},
		{"turns:\n- steps: hello\n", 2, 10, "want a list of steps, got string"},
		{"turns:\n- steps:\n  - tool_use: {name: Bash, inputs: {}}\n", 3, 28, `unknown field "inputs"`},
		{"turns:\n- steps:\n  - tool_use: {name: Bash, input: ls}\n", 3, 35, "string"},
		{"turns:\n- steps:\n  - tool_use: {input: {}}\n", 3, 5, "name is missing"},
		{"turns:\n- steps:\n  - tool_use: {name: Bash, gate: maybe}\n", 3, 5, `"maybe" is not one of ask, allow`},
		{"turns:\n- steps:\n  - tool_use: Bash\n", 3, 15, "want a mapping, got string"},
		{"turns:\n- steps:\n  - delay: soon\n", 3, 12, "soon"},
		{"turns:\n- steps:\n  - partial: {text: a, pause: 5x}\n", 3, 31, "5x"},
		{"turns:\n- steps:\n  - partial: {text: a, chunk: many}\n", 3, 31, "cannot unmarshal string, want int"},
		{"turns:\n- steps:\n  - text: {a: b}\n", 3, 11, "want text, got mapping"},
		{"turns:\n- steps:\n  - parallel: [text: a]\n", 3, 15, "tool_use, mcp_call, agent and shell steps only"},
		{"turns:\n- steps:\n  - flood: {count: 0}\n", 3, 5, "positive count"},
		{"turns:\n- steps:\n  - agent: {prompt: p, steps: [text: a, bogus: b]}\n", 3, 41, `unknown step "bogus"`},
		{"turns:\n- match: '('\n  steps: []\n", 2, 3, "missing closing"},
		{"turns:\n- when: a\n", 2, 3, "a turn needs steps"},
		{"misbehave: {split: words}\n", 1, 12, `"words" is not one of bytes, runes, halves`},
		{"misbehave:\n  exit_delay: long\n", 2, 15, "long"},
		{"misbehave: {stderr: lots}\n", 1, 21, "want a size"},
		{"misbehave: {stderr: -5}\n", 1, 21, "want a size"},
		{"misbehave: {die: {code: 1}}\n", 1, 12, "either at or lines"},
		{"misbehave: {die: {at: midnight}}\n", 1, 12, `"midnight" is not one of`},
		{"dialect: klingon\n", 1, 1, `"klingon" is not one of`},
		{"cost_per_call: [1]\n", 1, 16, "want float64"},
		{"model: a\nmodel: b\n", 2, 1, "model"},
		{"turns: [\n", 1, 8, ""},
		{"- a\n", 1, 1, "want a mapping"},
	}
	for _, tt := range tests {
		t.Run(tt.yaml, func(t *testing.T) {
			t.Parallel()
			_, err := scripted.Parse([]byte(tt.yaml))
			var wrong *scripted.Error
			require.ErrorAs(t, err, &wrong)
			require.Contains(t, wrong.Problem, tt.problem)
			require.Equal(t, [2]int{tt.line, tt.column}, [2]int{wrong.Line, wrong.Column}, wrong.Error())
		})
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.yaml")
	_, err := scripted.Load(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("x: 1\n"), 0o600))
	_, err = scripted.Load(path)
	require.EqualError(t, err, path+`:1:1: unknown field "x"`)
	require.NoError(t, os.WriteFile(path, []byte("model: m\n"), 0o600))
	s, err := scripted.Load(path)
	require.NoError(t, err)
	require.Equal(t, "m", s.Model)
}

func FuzzParse(f *testing.F) {
	f.Add("turns:\n- when: a\n  steps:\n  - text: hi\n  - parallel: [tool_use: {name: X}]\n")
	f.Add("misbehave: {die: {at: x}, stderr: 1KiB}")
	f.Add("turns: [{steps: [delay: 1s, agent: {prompt: p, steps: []}]}]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := scripted.Parse([]byte(text))
		if err == nil {
			require.NotNil(t, s)
			return
		}
		var wrong *scripted.Error
		require.ErrorAs(t, err, &wrong)
		require.NotEmpty(t, wrong.Error())
	})
}

func TestExampleScript(t *testing.T) {
	t.Parallel()
	s, err := scripted.Load(filepath.Join("testdata", "example.yaml"))
	require.NoError(t, err)
	require.Len(t, s.Turns, 3)
}

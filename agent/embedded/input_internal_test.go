package embedded

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// The agent says of an input what Claude Code 2.1.329 says (observed): frames and the model have a right input as the tool takes it, and a wrong one as it was.
func TestWhatFramesSayOfInputs(t *testing.T) {
	t.Parallel()
	w := &talk{shared: &shared{}}
	w.box = toolbox(true, taskTools())
	for _, c := range []struct{ tool, raw, want string }{
		{"Bash", `{"timeout":"5000", "command":"a <b>"}`, `{"timeout":5000,"command":"a <b>"}`},
		{"Bash", `{"command":"a","run_in_background":"true"}`, `{"command":"a","run_in_background":true}`},
		{"Bash", `{"command":"a", "timeout":5000}`, `{"command":"a", "timeout":5000}`},
		{"Bash", `{"command":"a","timeout":"x"}`, `{"command":"a","timeout":"x"}`},
		{"Read", `{"file_path":"a","limit":"1"}`, `{"file_path":"a","limit":"1"}`},
		{"Edit", `{"file_path":"a.go","old_string":"x","new_string":"y  \n<z> \t"}`, `{"file_path":"a.go","old_string":"x","new_string":"y\n<z>","replace_all":false}`},
		{"Edit", `{"file_path":"a.MD","old_string":"x","new_string":"y  "}`, `{"file_path":"a.MD","old_string":"x","new_string":"y  ","replace_all":false}`},
		{"Edit", `{"file_path":"a","old_string":1,"new_string":"y "}`, `{"file_path":"a","old_string":1,"new_string":"y "}`},
		{"Edit", `{"file_path":"a","new_string":"y"}`, `{"file_path":"a","new_string":"y"}`},
		{"Nothing", `{"timeout":"1"}`, `{"timeout":"1"}`},
	} {
		assert.Equal(t, c.want, string(w.said(&model.Block{Name: c.tool, Input: json.RawMessage(c.raw)})), c.raw)
	}
}

// Inputs are taken, or refused, as Claude Code 2.1.329 does (observed).
func TestInputs(t *testing.T) {
	t.Parallel()
	const failed = " failed due to the following issue:\n"
	box := toolbox(true, append(taskTools(), todoWrite()))
	for _, c := range []struct{ tool, raw, want, refused string }{
		{"Read", `{"file_path":"a","limit":" 1 ","offset":"+2"}`, `{"file_path":"a","limit":1,"offset":2}`, ""},
		{"Read", `{"file_path":"a","limit":["3"],"description":5}`, `{"file_path":"a","limit":3}`, ""},
		{"Read", `{"file_path":"a","limit":[1,2]}`, "", failed + "The parameter `limit` type is expected as `number` but provided as `array`"},
		{"Read", `{"file_path":"a","limit":"1e0"}`, "", failed + "The parameter `limit` type is expected as `number` but provided as `string`"},
		{"Read", `{"file_path":"a","limit":""}`, "", failed + "The parameter `limit` type is expected as `number` but provided as `string`"},
		{"Read", `{"file_path":"a","offset":"1.5"}`, "", failed + "The parameter `offset` type is expected as `int` but provided as `number`"},
		{"Read", `{"file_path":"a","allow_large":"true"}`, `{"file_path":"a","allow_large":true}`, ""},
		{"Read", `{"file_path":"a","allow_large":"True"}`, "", failed + "The parameter `allow_large` type is expected as `boolean` but provided as `string`"},
		{"Read", `{"file_path":null}`, "", failed + "The parameter `file_path` type is expected as `string` but provided as `null`"},
		{"Read", `{"file_path":true,"limit":"x","zz":1,"2":1,"aa":2}`, "", " failed due to the following issues:\nAn unexpected parameter `2` was provided\nAn unexpected parameter `zz` was provided\nAn unexpected parameter `aa` was provided\n" +
			"The parameter `file_path` type is expected as `string` but provided as `boolean`\nThe parameter `limit` type is expected as `number` but provided as `string`"},
		{"Write", `{"path":"a","content":"x","description":"d"}`, `{"content":"x","file_path":"a"}`, ""},
		{"Write", `{"file_path":"a","content":"x","zz":1,"description":"d"}`, "", " failed due to the following issues:\nAn unexpected parameter `zz` was provided\nAn unexpected parameter `description` was provided"},
		{"Write", `{"path":"b","file_path":"a","content":"x"}`, "", failed + "An unexpected parameter `path` was provided"},
		{"Write", `{"path":5,"content":"x"}`, "", " failed due to the following issues:\nThe required parameter `file_path` is missing\nAn unexpected parameter `path` was provided"},
		{"Edit", `{"path":"a","old_str":"x","new_str":"y","replace_all":"false"}`, `{"file_path":"a","new_string":"y","old_string":"x","replace_all":false}`, ""},
		{"Edit", `{"file_path":"a","old_str":"z","old_string":"x","new_string":"y"}`, `{"file_path":"a","new_string":"y","old_string":"x"}`, ""},
		{"Edit", `{"filename":"a","old_str":"x","new_str":"y"}`, "", " failed due to the following issues:\nThe required parameter `file_path` is missing\nAn unexpected parameter `filename` was provided"},
		{"Grep", `{"pattern":"x","-n":"false","head_limit":"3"}`, `{"-n":false,"head_limit":3,"pattern":"x"}`, ""},
		{"Grep", `{"pattern":"x","head_limit":[3]}`, "", failed + "The parameter `head_limit` type is expected as `number` but provided as `array`"},
		{"Grep", `{"pattern":"x","output_mode":"x","zz":1}`, "", " failed due to the following issues:\nAn unexpected parameter `zz` was provided\nThe parameter `output_mode` is invalid: Invalid option: expected one of \"content\"|\"files_with_matches\"|\"count\""},
		{"TaskCreate", `{"subject":"A","activeForm":5,"metadata":"x","zz":1}`, `{"description":"A","subject":"A"}`, ""},
		{"TaskCreate", `{"description":"d"}`, `{"description":"d","subject":"d"}`, ""},
		{"TaskCreate", `{}`, "", " failed due to the following issues:\nThe required parameter `subject` is missing\nThe required parameter `description` is missing"},
		{"TaskUpdate", `{"task_id":"1","addBlocks":"[\"2\"]"}`, `{"addBlocks":["2"],"taskId":"1"}`, ""},
		{"TaskUpdate", `{"taskId":"1","addBlocks":[2]}`, "", failed + "The parameter `addBlocks[0]` type is expected as `string` but provided as `number`"},
		{"TaskUpdate", `{"taskId":"1","metadata":"x"}`, "", failed + "The parameter `metadata` type is expected as `record` but provided as `string`"},
		{"TaskUpdate", `{"taskId":"1","status":"done","subject":7}`, "", " failed due to the following issues:\nThe parameter `subject` type is expected as `string` but provided as `number`\nThe parameter `status` matches none of the accepted forms"},
		{"TaskUpdate", `{"taskId":"1","id":"2"}`, "", failed + "An unexpected parameter `id` was provided"},
		{"TodoWrite", `{"todos":null}`, "", failed + "The parameter `todos` type is expected as `array` but provided as `null`"},
		{"TodoWrite", `{"todos":["a"]}`, "", failed + "The parameter `todos[0]` type is expected as `object` but provided as `string`"},
		{"TodoWrite", `{"todos":[{"content":"a","status":"done"}]}`, "", " failed due to the following issues:\nThe required parameter `todos[0].activeForm` is missing\nThe parameter `todos[0].status` is invalid: Invalid option: expected one of \"pending\"|\"in_progress\"|\"completed\""},
	} {
		var own *tool
		for _, b := range box {
			if b.name == c.tool {
				own = b
			}
		}
		var in agent.Object
		require.NoError(t, protocol.Unmarshal([]byte(c.raw), &in))
		if own.fix != nil {
			own.fix(own, in)
		}
		issues := own.coerce(in, keysOf(json.RawMessage(c.raw)))
		if c.refused != "" {
			text, detail := faulty(c.tool, issues)
			assert.Equal(t, "InputValidationError: "+c.tool+c.refused, text, c.raw)
			assert.Contains(t, detail, "InputValidationError: [\n  {\n    \"", c.raw)
			continue
		}
		assert.Empty(t, issues, c.raw)
		got, err := json.Marshal(in)
		require.NoError(t, err)
		assert.JSONEq(t, c.want, string(got), c.raw)
	}
}

func TestInputIssuesAsJSON(t *testing.T) {
	t.Parallel()
	text, detail := faulty("Read", read().coerce(agent.Object{"file_path": "a", "limit": 1e20}, nil))
	assert.Equal(t, "InputValidationError: [\n  {\n    \"code\": \"too_big\",\n    \"maximum\": 9007199254740991,\n    \"note\": \"Integers must be within the safe integer range.\",\n    \"origin\": \"int\",\n    \"inclusive\": true,\n    \"path\": [\n      \"limit\"\n    ],\n    \"message\": \"Too big: expected int to be <=9007199254740991\"\n  }\n]", detail)
	assert.Equal(t, detail, text, "only such issues are read as JSON")
	_, detail = faulty("Read", read().coerce(agent.Object{"file_path": "a", "offset": 1.5, "a": 1, "b": 2}, []string{"b", "a"}))
	assert.Equal(t, "InputValidationError: [\n  {\n    \"expected\": \"int\",\n    \"format\": \"safeint\",\n    \"code\": \"invalid_type\",\n    \"path\": [\n      \"offset\"\n    ],\n    \"message\": \"Invalid input: expected int, received number\"\n  },\n"+
		"  {\n    \"code\": \"unrecognized_keys\",\n    \"keys\": [\n      \"b\",\n      \"a\"\n    ],\n    \"path\": [],\n    \"message\": \"Unrecognized keys: \\\"b\\\", \\\"a\\\"\"\n  }\n]", detail)
}

func TestInputThatIsNoObject(t *testing.T) {
	t.Parallel()
	for bad, want := range map[string]string{`["a",1]`: `{"0":null,"1":null}`, `"é😀"`: `{"0":null,"1":null,"2":null}`, `5`: `{}`, `true`: `{}`, `[]`: `{}`} {
		in, text, _ := unparsed("Read", bad)
		assert.Equal(t, want, string(in), bad)
		assert.Empty(t, text)
	}
	_, text, detail := unparsed("Read", `{"a":"é`)
	assert.Contains(t, text, "You sent (first 7 of 7 bytes): {\"a\":\"é\nCommon causes")
	assert.Equal(t, "InputValidationError: JSON parse failed (7 bytes)", detail)
}

// The schemas are those of Claude Code 2.1.329, but for descriptions and for what a tool checks or
// takes without saying so: each request has them all.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, own := range toolbox(true, append(taskTools(), todoWrite())) {
		bare := *own
		bare.params = nil
		for _, p := range own.params {
			p.about = ""
			bare.params = append(bare.params, p)
		}
		if full := schemas()[own.name]; full != "" {
			var want any
			require.NoError(t, json.Unmarshal([]byte(full), &want))
			want = spoken(want)
			for _, name := range untold()[own.name] {
				properties := want.(map[string]any)["properties"].(map[string]any)
				require.Contains(t, properties, name)
				delete(properties, name)
			}
			short, err := json.Marshal(want)
			require.NoError(t, err)
			assert.JSONEq(t, string(short), string(bare.schema()), own.name)
		}
	}
}

// untold are parameters that the model is not told of, by tool. They are taken all the same.
func untold() map[string][]string {
	return map[string][]string{"Bash": {"dangerouslyDisableSandbox"}, "Grep": {"-n", "context"}, "TaskStop": {"shell_id"}}
}

// spoken is a schema without limits and defaults.
func spoken(v any) any {
	o, isObject := v.(map[string]any)
	if !isObject {
		return v
	}
	if all, is := o["anyOf"].([]any); is { // one text, or one of several
		first, second := all[0].(map[string]any), all[1].(map[string]any)
		o = map[string]any{"type": "string", "enum": append(first["enum"].([]any), second["const"])}
	}
	for name, value := range o {
		switch name {
		case "additionalProperties", "propertyNames", "minimum", "exclusiveMinimum", "maximum", "minItems", "maxItems", "default":
			delete(o, name)
		default:
			o[name] = spoken(value)
		}
	}
	return o
}

// The model may give parameters that its schemas do not list.
func TestWhatIsNotToldIsTaken(t *testing.T) {
	t.Parallel()
	inputs := map[string]string{
		"Bash": `{"command":"x","dangerouslyDisableSandbox":true}`, "Grep": `{"pattern":"x","-n":false,"context":2}`, "TaskStop": `{"shell_id":"b1"}`,
	}
	for _, own := range toolbox(true, nil) {
		names := untold()[own.name]
		if names == nil {
			continue
		}
		require.Contains(t, inputs, own.name)
		for _, name := range names {
			require.Contains(t, inputs[own.name], `"`+name+`"`)
			require.NotContains(t, string(own.schema()), `"`+name+`"`)
		}
		var in agent.Object
		require.NoError(t, json.Unmarshal([]byte(inputs[own.name]), &in))
		assert.Empty(t, own.coerce(in, keysOf(json.RawMessage(inputs[own.name]))), own.name)
	}
}

func schemas() map[string]string {
	return map[string]string{
		"AskUserQuestion": `{"type":"object","properties":{"questions":{"minItems":1,"maxItems":4,"type":"array","items":{"type":"object","properties":{"question":{"type":"string"},"header":{"type":"string"},"options":{"minItems":2,"maxItems":4,"type":"array","items":{"type":"object","properties":{"label":{"type":"string"},"description":{"type":"string"}},"required":["label","description"],"additionalProperties":false}},"multiSelect":{"default":false,"type":"boolean"}},"required":["question","header","options"],"additionalProperties":false}}},"required":["questions"],"additionalProperties":false}`,
		"EnterPlanMode":   `{"type":"object","properties":{},"additionalProperties":false}`,
		"Skill":           `{"type":"object","properties":{"skill":{"type":"string"},"args":{"type":"string"}},"required":["skill"],"additionalProperties":false}`,
		"WebFetch":        `{"type":"object","properties":{"url":{"type":"string","format":"uri"},"prompt":{"type":"string"},"offset":{"type":"integer","minimum":0,"maximum":9007199254740991}},"required":["url","prompt"],"additionalProperties":false}`,
		"Bash":            `{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"number"},"description":{"type":"string"},"run_in_background":{"type":"boolean"},"dangerouslyDisableSandbox":{"type":"boolean"}},"required":["command"],"additionalProperties":false}`,
		"Edit":            `{"type":"object","properties":{"file_path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"default":false,"type":"boolean"}},"required":["file_path","old_string","new_string"],"additionalProperties":false}`,
		"Glob":            `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"}},"required":["pattern"],"additionalProperties":false}`,
		"Grep":            `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"},"glob":{"type":"string"},"output_mode":{"type":"string","enum":["content","files_with_matches","count"]},"-B":{"type":"number"},"-A":{"type":"number"},"-C":{"type":"number"},"context":{"type":"number"},"-n":{"type":"boolean"},"-i":{"type":"boolean"},"-o":{"type":"boolean"},"type":{"type":"string"},"head_limit":{"type":"number"},"offset":{"type":"number"},"multiline":{"type":"boolean"}},"required":["pattern"],"additionalProperties":false}`,
		"NotebookEdit":    `{"type":"object","properties":{"notebook_path":{"type":"string"},"cell_id":{"type":"string"},"new_source":{"type":"string"},"cell_type":{"type":"string","enum":["code","markdown"]},"edit_mode":{"type":"string","enum":["replace","insert","delete"]}},"required":["notebook_path","new_source"],"additionalProperties":false}`,
		"Read":            `{"type":"object","properties":{"file_path":{"type":"string"},"offset":{"type":"integer","minimum":0,"maximum":9007199254740991},"limit":{"type":"integer","exclusiveMinimum":0,"maximum":9007199254740991},"pages":{"type":"string"},"allow_large":{"type":"boolean"}},"required":["file_path"],"additionalProperties":false}`,
		"TaskCreate":      `{"type":"object","properties":{"subject":{"type":"string"},"description":{"type":"string"},"activeForm":{"type":"string"},"metadata":{"type":"object","propertyNames":{"type":"string"},"additionalProperties":{}}},"required":["subject","description"],"additionalProperties":false}`,
		"TaskGet":         `{"type":"object","properties":{"taskId":{"type":"string"}},"required":["taskId"],"additionalProperties":false}`,
		"TaskList":        `{"type":"object","properties":{},"additionalProperties":false}`,
		"TaskStop":        `{"type":"object","properties":{"task_id":{"type":"string"},"shell_id":{"type":"string"}},"additionalProperties":false}`,
		"TaskUpdate":      `{"type":"object","properties":{"taskId":{"type":"string"},"subject":{"type":"string"},"description":{"type":"string"},"activeForm":{"type":"string"},"status":{"anyOf":[{"type":"string","enum":["pending","in_progress","completed"]},{"type":"string","const":"deleted"}]},"addBlocks":{"type":"array","items":{"type":"string"}},"addBlockedBy":{"type":"array","items":{"type":"string"}},"owner":{"type":"string"},"metadata":{"type":"object","propertyNames":{"type":"string"},"additionalProperties":{}}},"required":["taskId"],"additionalProperties":false}`,
		"TodoWrite":       `{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object","properties":{"content":{"type":"string","minLength":1},"status":{"type":"string","enum":["pending","in_progress","completed"]},"activeForm":{"type":"string","minLength":1}},"required":["content","status","activeForm"],"additionalProperties":false}}},"required":["todos"],"additionalProperties":false}`,
		"Write":           `{"type":"object","properties":{"file_path":{"type":"string"},"content":{"type":"string"}},"required":["file_path","content"],"additionalProperties":false}`,
	}
}

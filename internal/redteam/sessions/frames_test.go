package sessions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agent-troupe/troupe/protocol/tools"
	"github.com/agent-troupe/troupe/sdk"
)

// What the callback sees of a request, and what is sent back.
func TestFrames(t *testing.T) {
	t.Parallel()
	type seen struct {
		tool  string
		input string
		typed string
	}
	ask := func(id, body string) string {
		return fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":{"subtype":"can_use_tool",%s}}`, id, body)
	}
	for name, line := range map[string]string{
		"plain":                   ask("a", `"tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"`),
		"spaces":                  ask("a", `"tool_name":"Bash","input": { "command" : "ls" , "x" : [ 1 , 2 ] } ,"tool_use_id":"t"`),
		"big numbers":             ask("a", `"tool_name":"Bash","input":{"a":12345678901234567890123,"b":1e400,"c":-0,"d":1.0,"e":1E5},"tool_use_id":"t"`),
		"unicode":                 ask("a", `"tool_name":"Bash","input":{"command":"\u2028\u2029 < > & \u003c \ud800 \udc00 é é"},"tool_use_id":"t"`),
		"raw u2028":               ask("a", "\"tool_name\":\"Bash\",\"input\":{\"command\":\"\u2028<&>\"},\"tool_use_id\":\"t\""),
		"invalid utf8 input":      ask("a", "\"tool_name\":\"Bash\",\"input\":{\"command\":\"a\xffb\"},\"tool_use_id\":\"t\""),
		"invalid utf8 name":       ask("a", "\"tool_name\":\"Ba\xffsh\",\"input\":{\"command\":\"ls\"},\"tool_use_id\":\"t\""),
		"dup command":             ask("a", `"tool_name":"Bash","input":{"command":"ls","command":"rm"},"tool_use_id":"t"`),
		"case command":            ask("a", `"tool_name":"Bash","input":{"command":"rm","Command":"ls"},"tool_use_id":"t"`),
		"dup tool_name":           ask("a", `"tool_name":"Read","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"`),
		"case Tool_Name":          ask("a", `"tool_name":"Bash","Tool_Name":"Read","input":{"command":"ls"},"tool_use_id":"t"`),
		"case Tool_Name first":    ask("a", `"Tool_Name":"Read","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"`),
		"case INPUT":              ask("a", `"tool_name":"Bash","input":{"command":"rm"},"INPUT":{"command":"ls"},"tool_use_id":"t"`),
		"kelvin fold":             ask("a", `"tool_name":"Bash","too\u017f_name":"x","input":{"command":"rm"},"tool_u\u017fe_id":"x","tool_use_id":"t"`),
		"dup input":               ask("a", `"tool_name":"Bash","input":{"command":"ls"},"input":{"command":"rm"},"tool_use_id":"t"`),
		"dup input null":          ask("a", `"tool_name":"Bash","input":{"command":"rm"},"input":null,"tool_use_id":"t"`),
		"escaped key":             ask("a", `"tool_n\u0061me":"Bash","inp\u0075t":{"command":"ls"},"tool_use_id":"t"`),
		"dup request":             `{"type":"control_request","request_id":"a","request":{"subtype":"can_use_tool","tool_name":"Read","input":{}},"request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm"},"tool_use_id":"t"}}`,
		"case Request":            `{"type":"control_request","request_id":"a","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm"},"tool_use_id":"t"},"Request":{"subtype":"can_use_tool","tool_name":"Read","input":{}}}`,
		"dup type":                `{"type":"x","type":"control_request","request_id":"a","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm"},"tool_use_id":"t"}}`,
		"dup id":                  `{"type":"control_request","request_id":"b","request_id":"a","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm"},"tool_use_id":"t"}}`,
		"input absent":            ask("a", `"tool_name":"Bash","tool_use_id":"t"`),
		"input null":              ask("a", `"tool_name":"Bash","input":null,"tool_use_id":"t"`),
		"input list":              ask("a", `"tool_name":"Bash","input":[1],"tool_use_id":"t"`),
		"input text":              ask("a", `"tool_name":"Bash","input":"ls","tool_use_id":"t"`),
		"name number":             ask("a", `"tool_name":5,"input":{},"tool_use_id":"t"`),
		"name absent":             ask("a", `"input":{},"tool_use_id":"t"`),
		"name null":               ask("a", `"tool_name":null,"input":{},"tool_use_id":"t"`),
		"id number":               `{"type":"control_request","request_id":5,"request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"t"}}`,
		"id absent":               `{"type":"control_request","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"t"}}`,
		"id surrogate":            `{"type":"control_request","request_id":"\ud800","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"t"}}`,
		"trailing data":           ask("a", `"tool_name":"Bash","input":{},"tool_use_id":"t"`) + ` {"x":1}`,
		"trailing comma":          ask("a", `"tool_name":"Bash","input":{},"tool_use_id":"t",`),
		"broken number":           ask("a", `"tool_name":"Bash","input":{"x":01},"tool_use_id":"t"`),
		"broken number 2":         ask("a", `"tool_name":"Bash","input":{"x":1-2},"tool_use_id":"t"`),
		"single bracket kinds":    ask("a", `"tool_name":"Bash","input":{"x":[1}},"tool_use_id":"t"`),
		"control char in string":  ask("a", "\"tool_name\":\"Bash\",\"input\":{\"x\":\"a\x01b\"},\"tool_use_id\":\"t\""),
		"bad escape":              ask("a", `"tool_name":"Bash","input":{"x":"\q"},"tool_use_id":"t"`),
		"deep":                    ask("a", `"tool_name":"Bash","input":{"x":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+`},"tool_use_id":"t"`),
		"suggestions wrong type":  ask("a", `"tool_name":"Bash","input":{"command":"ls"},"permission_suggestions":"x","tool_use_id":"t"`),
		"subtype and type differ": `{"type":"control_request","request_id":"a","request":{"type":"hook_callback","subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}`,
		"subtype case":            `{"type":"control_request","request_id":"a","request":{"Subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}`,
		"subtype dup":             `{"type":"control_request","request_id":"a","request":{"subtype":"mcp_message","subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}`,
		"type padded":             `{"type":"control_request ","request_id":"a","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}`,
		"name NFD":                ask("a", `"tool_name":"mcp__é__x","input":{},"tool_use_id":"t"`),
		"name NUL":                ask("a", `"tool_name":"Bash\u0000","input":{},"tool_use_id":"t"`),
		"name padded":             ask("a", `"tool_name":" Bash ","input":{},"tool_use_id":"t"`),
		"proto key":               ask("a", `"__proto__":{"tool_name":"Bash"},"tool_name":"Read","input":{"__proto__":{"command":"x"}},"tool_use_id":"t"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var all []seen
			o := &sdk.Options{CanUseTool: func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				mu.Lock()
				defer mu.Unlock()
				in, err := tools.DecodeInput(r.ToolName, r.Input)
				all = append(all, seen{r.ToolName, string(r.Input[:min(200, len(r.Input))]), fmt.Sprintf("%+v %v", in, err)[:min(90, len(fmt.Sprintf("%+v %v", in, err)))]})
				return sdk.Allow(), nil
			}}
			a := converse(t, o, line)
			mu.Lock() // a callback may outlive its session
			defer mu.Unlock()
			for i := range all {
				t.Logf("saw %q %q", all[i].tool, all[i].input)
			}
			for _, l := range a.lines {
				var m struct {
					Response struct {
						RequestID string `json:"request_id"`
						Response  struct {
							Behavior     string          `json:"behavior"`
							UpdatedInput json.RawMessage `json:"updatedInput"`
							Message      string
						}
						Error string
					}
				}
				_ = json.Unmarshal([]byte(l), &m)
				t.Logf("answered id %q: %s %s %.200s", m.Response.RequestID, m.Response.Response.Behavior, m.Response.Response.Message+m.Response.Error, m.Response.Response.UpdatedInput)
			}
			if len(a.lines) == 0 {
				t.Logf("no answer; %.300v", a.log)
			}
		})
	}
}

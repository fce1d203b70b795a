package protocol_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
)

type inner struct {
	Name   string `json:"name"`
	Amount int    `json:"amount,omitempty"`
}

type Embedded struct {
	ID   string `json:"id"`
	Name string `json:"name"` // hidden
}

type outer struct {
	Embedded
	Name   string            `json:"name"`
	Inner  *inner            `json:"inner"`
	List   []inner           `json:"list"`
	ByName map[string]*inner `json:"byName"`
	Self   []outer           `json:"self"`
	Any    any               `json:"any"`
	Raw    json.RawMessage   `json:"raw"`
	Not    string            `json:"-"`
	Dash   string            `json:"-,"` //nolint:staticcheck // it is the name -
}

func TestNamesAreExact(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]outer{
		`{"name":"a","Name":"b","NAME":"c"}`:                   {Name: "a"},
		`{"NAME":"b","name":"a"}`:                              {Name: "a"},
		`{"Name":"b"}`:                                         {},
		`{"n\u0061me":"a","\u004eame":"b"}`:                    {Name: "a"},
		`{"ID":"x","id":"y","Id":"z"}`:                         {Embedded: Embedded{ID: "y"}},
		`{"inner":{"name":"a","Name":"b","AMOUNT":5}}`:         {Inner: &inner{Name: "a"}},
		`{"inner":{"name":"a"},"Inner":{"amount":5}}`:          {Inner: &inner{Name: "a"}},
		`{"inner":{"name":"a"},"inner":{"amount":5}}`:          {Inner: &inner{Amount: 5}},
		`{"name":"a","name":null}`:                             {},
		`{"n\u0061me":"a","name":"b","nam\u0065":"c"}`:         {Name: "c"},
		`{"list":[{"amount":1,"Amount":2},{"AMOUNT":3}]}`:      {List: []inner{{Amount: 1}, {}}},
		`{"byName":{"A":{"Name":"x"},"a":{"name":"y"}}}`:       {ByName: map[string]*inner{"A": {}, "a": {Name: "y"}}},
		`{"byname":{"a":{"name":"y"}},"raw":{"A":1,"a":2}}`:    {Raw: json.RawMessage(`{"A":1,"a":2}`)},
		`{"self":[{"self":[{"Name":"a"}]}]}`:                   {Self: []outer{{Self: []outer{{}}}}},
		`{"any":{"Name":1,"name":2}}`:                          {Any: map[string]any{"Name": 1.0, "name": 2.0}},
		`{"Not":"a","not":"b","-":"c"}`:                        {Dash: "c"},
		` { "name" : "a" , "Name" : [ { } , "]" ] } `:          {Name: "a"},
		`{"li\u017ft":[{"amount":1}],"self":[]}`:               {Self: []outer{}},
		`{"inner":null,"list":null,"self":null,"byName":null}`: {},
	} {
		var got outer
		require.NoError(t, protocol.Unmarshal([]byte(raw), &got), raw)
		assert.Equal(t, want, got, raw)
	}
}

func TestWhatIsNoJSONStaysAnError(t *testing.T) {
	t.Parallel()
	deep := `{"self":` + strings.Repeat(`[{"self":`, 20_000)
	for _, raw := range []string{``, `{`, `{"Name"`, `{"Name":}`, `{"Name":1,}`, `{"Name":"a"}}`, `{"Name":tru}`, `{"list":[{"Name":1]}`, deep, deep + `1` + strings.Repeat(`}]`, 20_000) + `}`} {
		var got, want outer
		require.Error(t, protocol.Unmarshal([]byte(raw), &got), "%.40s", raw)
		require.Error(t, json.Unmarshal([]byte(raw), &want), "%.40s", raw)
	}
	var got outer
	err := protocol.Unmarshal([]byte(`{"Name":5,"inner":{"amount":"x","name":"a"},"list":[]}`), &got)
	var typ *json.UnmarshalTypeError
	require.ErrorAs(t, err, &typ)
	assert.Equal(t, "inner.amount", typ.Field)
	assert.Equal(t, int64(len(`{"Name":5,"inner":{"amount":"x"`)), typ.Offset, "the offset is that of the line")
	assert.Equal(t, []inner{}, got.List, "the rest decodes, as with encoding/json")
}

func TestTheGivenBytesAreNotChanged(t *testing.T) {
	t.Parallel()
	raw := `{"Name":"b","name":"a"}`
	b := []byte(raw)
	require.NoError(t, protocol.Unmarshal(b, &outer{}))
	assert.Equal(t, raw, string(b))
}

func TestDecodeWantsNames(t *testing.T) {
	t.Parallel()
	var plain struct{ Command string }
	err := protocol.Decode([]byte(`{"command":"rm"}`), &plain)
	require.ErrorContains(t, err, `json:"command"`)
	var below struct {
		All map[string][]struct {
			Deep *struct{ X int } `json:"deep"`
		} `json:"all"`
	}
	require.ErrorContains(t, protocol.Decode([]byte(`{}`), &below), "X has no name")

	var named struct {
		Command string `json:"command"`
		hidden  string
	}
	require.NoError(t, protocol.Decode([]byte(`{"command":"rm","Command":"ls"}`), &named))
	assert.Equal(t, "rm", named.Command)
	assert.Empty(t, named.hidden)
	var list []any
	require.NoError(t, protocol.Decode([]byte(`[1]`), &list))
	require.Error(t, protocol.Decode([]byte(`{}`), nil))
}

// Every struct of the wire names its fields.
func TestTheWireNamesItsFields(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		&protocol.ResultMessage{}, &protocol.InitMessage{}, &protocol.CanUseToolRequest{}, &protocol.HookCallbackRequest{},
		&protocol.MCPMessageRequest{}, &protocol.ElicitationRequest{}, &protocol.PostToolUseFailureInput{}, &protocol.StopInput{},
	} {
		require.NoError(t, protocol.Decode([]byte(`{}`), v), "%T", v)
	}
}

// jsReader is what JavaScript reads: exact names, the last of each counts.
func jsReader(t require.TestingT, raw []byte) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal(raw, &all))
	return all
}

// request is a can_use_tool request with the members in some order and spelling.
func request(members ...string) []byte {
	return []byte(`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool",` + strings.Join(members, ",") + `}}`)
}

func TestARequestWithAKeyTwiceIsAnError(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		string(request(`"tool_name":"Read"`, `"tool_name":"Bash"`)),
		string(request(`"tool_name":"Bash"`, `"input":{"command":"ls"}`, `"input":{"command":"rm"}`)),
		string(request(`"tool_name":"Bash"`, `"tool_n\u0061me":"Read"`)),
		string(request(`"subtype":"can_use_tool"`)),
		string(request(`"input":{"command":"ls","command":"rm"}`)),
		string(request(`"input":{"a":[{"b":{"c":1,"c":2}}]}`)),
		string(request(`"input":{"` + strings.Join(strings.Split("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,a", ","), `":1,"`) + `":1}`)),
		`{"type":"control_request","request_id":"a","request_id":"b","request":{"subtype":"can_use_tool"}}`,
		`{"type":"control_request","request":{},"request_id":"b","request":{"subtype":"can_use_tool"}}`,
		`{"type":"x","type":"control_request","request_id":"b","request":{"subtype":"can_use_tool"}}`,
		`{"type":"control_request","request_id":"b","request":{"subtype":"mcp_message","server_name":"s","message":{"method":"ping","method":"tools/call"}}}`,
		`{"type":"control_request","request_id":"b","request":{"subtype":"mcp_message","message":{"params":{"name":"safe","name":"danger"}}}}`,
		`{"type":"control_request","request_id":"b","request":{"subtype":"hook_callback","input":{"cwd":"/a","cwd":"/b"}}}`,
		`{"type":"control_request","request_id":"b","request":{"subtype":"hologram","x":1,"x":2}}`,
	} {
		f, err := protocol.ParseFrame([]byte(line))
		require.NoError(t, err, line)
		_, err = protocol.DecodeAgentRequest(f)
		var twice *protocol.DuplicateKeyError
		require.ErrorAs(t, err, &twice, line)
	}
	for _, line := range []string{
		string(request(`"tool_name":"Bash"`, `"Tool_Name":"Read"`, `"input":{"a":{"k":1},"b":{"k":1},"k":[{"k":1},{"k":1}]}`)),
		string(request(`"input":{"\ud800":1,"\ud801":2,"\ufffd":3,"command":"a","Command":"b"}`)),
		string(request(`"input":["a","a",{"a":"a"},"a"]`)),
	} {
		f, err := protocol.ParseFrame([]byte(line))
		require.NoError(t, err)
		_, err = protocol.DecodeAgentRequest(f)
		require.NoError(t, err, line)
	}
}

// FuzzKeys: however the keys of a request are spelled and repeated, a gate sees
// what the agent reads, or the request is an error.
func FuzzKeys(f *testing.F) {
	f.Add(uint64(0), "Read", "x")
	f.Add(uint64(1<<40+77), "Bash", `{"command":"ls"}`)
	f.Add(^uint64(0), "\u017f", "K")
	f.Fuzz(func(t *testing.T, seed uint64, a, b string) {
		text := func(s string) string { q, _ := json.Marshal(s); return string(q) }
		spell := func(name string) string {
			out := []rune(name)
			for i, r := range out {
				switch seed % 7 {
				case 1:
					out[i] = unicode.ToUpper(r)
				case 2:
					out[i] = unicode.SimpleFold(r)
				}
				seed = seed/7 ^ seed<<59
			}
			if seed%5 == 0 {
				return fmt.Sprintf(`"\u%04x%s"`, out[0], string(out[1:]))
			}
			return text(string(out))
		}
		var members []string
		for i := range 6 {
			name := []string{"tool_name", "tool_use_id", "input", "blocked_path", "mcp_server", "agent_id"}[(seed>>i)%6]
			value := text([]string{a, b}[seed>>(i+3)%2])
			switch name {
			case "input":
				value = `{` + spell("command") + `:` + text(a) + `,` + spell("command") + `:` + text(b) + `}`
			case "mcp_server":
				value = `{` + spell("name") + `:` + text(a) + `,` + spell("source") + `:` + text(b) + `}`
			}
			members = append(members, spell(name)+":"+value)
		}
		line := request(members...)
		frame, err := protocol.ParseFrame(line)
		require.NoError(t, err)
		r, err := protocol.DecodeAgentRequest(frame)
		if err != nil {
			return // a failure of the gate
		}
		ask := r.(*protocol.CanUseToolRequest)
		js := jsReader(t, jsReader(t, line)["request"])
		str := func(key string) (s string) {
			if raw, ok := js[key]; ok {
				require.NoError(t, json.Unmarshal(raw, &s))
			}
			return s
		}
		require.Equal(t, []string{str("tool_name"), str("tool_use_id"), str("blocked_path"), str("agent_id")},
			[]string{ask.ToolName, ask.ToolUseID, ask.BlockedPath, ask.AgentID}, "%s", line)
		require.Equal(t, string(js["input"]), string(ask.Input), "%s", line)
		if server, ok := js["mcp_server"]; ok {
			fields := jsReader(t, server)
			var name string
			if raw, ok := fields["name"]; ok {
				require.NoError(t, json.Unmarshal(raw, &name))
			}
			require.Equal(t, name, ask.MCPServer.Name, "%s", line)
		}
		var in struct {
			Command string `json:"command"`
		}
		require.NoError(t, protocol.Unmarshal(orObject(ask.Input), &in))
		var want string
		if raw, ok := jsReader(t, orObject(ask.Input))["command"]; ok {
			require.NoError(t, json.Unmarshal(raw, &want))
		}
		require.Equal(t, want, in.Command, "%s", line)
	})
}

func orObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// FuzzUnmarshal: without keys that differ in case or come twice it is
// encoding/json.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"name":"a","inner":{"amount":5},"self":[{"id":"x"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got, want outer
		err, wantErr := protocol.Unmarshal(raw, &got), json.Unmarshal(raw, &want)
		if !json.Valid(raw) {
			require.Error(t, err)
			return
		}
		if !strings.ContainsAny(string(raw), `\`) && strings.ToLower(string(raw)) == string(raw) && !reflect.DeepEqual(want, got) {
			seen := map[string]int{} // lower case alone: only a key that comes twice may differ
			for _, part := range strings.Split(string(raw), `"`) {
				seen[part]++
			}
			for _, name := range []string{"name", "id", "inner", "list", "byname", "self", "any", "raw", "amount", "-"} {
				if seen[name] > 1 {
					return
				}
			}
			require.Equal(t, want, got, "%s: %v, %v", raw, err, wantErr)
		}
	})
}

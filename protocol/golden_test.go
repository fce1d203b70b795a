package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// deliberate are the lines that a recording made up to be unknown.
var deliberate = map[string]bool{
	"brand_new_type": true, "totally_new_type": true, "weird": true, "brand_new": true,
	"system/brand_new": true, "system/brand_new_subtype": true, "": true,
}

// deliberateRequests are the requests made up to be refused.
var deliberateRequests = map[string]bool{
	"brand_new_request": true, "unknown_thing": true, "nonsense": true, "channel_enable": true, "": true,
}

// madeUp are keys that a recording put where they do not belong, to see
// whether they pass: by file, or "" for any.
var madeUp = map[string]map[string]bool{
	"":                                    {"x": true, "foo": true, "late": true, "allowed": true},
	"claude/sdk-recorder/cb-hooks.ndjson": {"tool_name": true, "slow": true},
	"qoder/real-control-sweep-after-init-refused.ndjson": {"model": true},
}

// misread are the recorded requests that were malformed on purpose.
var misread = map[string]bool{
	"qoder/real-protocol-edge-cases.ndjson initialize": true,
}

func TestGolden(t *testing.T) {
	t.Parallel()
	traces(t, func(t *testing.T, lines []recorded) {
		kinds := map[string]string{}
		for _, l := range lines {
			if l.line == nil {
				checkRaw(t, l)
				continue
			}
			at := fmt.Sprintf("%s:%d %.300s", l.file, l.n, l.line)
			f, err := ParseFrame(l.line)
			require.NoError(t, err, at)
			checkEnvelope(t, f, at)
			switch f.Type {
			case TypeControlRequest:
				kinds[fmt.Sprint(l.agent, f.RequestID)] = f.Subtype
				checkRequest(t, l, f, at)
			case TypeControlResponse:
				checkResponse(t, f, kinds[fmt.Sprint(!l.agent, f.RequestID)], at)
			case TypeControlCancel, TypeControlCancelAlias:
				assert.NotEmpty(t, f.RequestID, at)
			default:
				checkMessage(t, f, at)
			}
		}
	})
}

// checkRaw reads a line that the recording kept as text.
func checkRaw(t *testing.T, l recorded) {
	t.Helper()
	s := NewSplitter(0)
	n := 0
	for rest := []byte(l.raw); len(rest) > 0; {
		c := copy(s.Buffer(), rest)
		s.Commit(c)
		rest = rest[c:]
	}
	for {
		line, ok := s.Finish()
		if !ok {
			break
		}
		n++
		if _, err := ParseFrame(line.Data); err != nil {
			var fe *FrameError
			require.ErrorAs(t, err, &fe)
			assert.Equal(t, json.Valid(line.Data), fe.Kind == NotObject, "%s", line.Data)
		}
	}
	if strings.TrimSpace(l.raw) != "" {
		assert.Equal(t, 1, n, "%q", l.raw)
	}
}

// TestOptionsMap reads the initialize requests that Claude's SDK made of each
// of its options.
func TestOptionsMap(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/traces/claude/options-map.ndjson")
	require.NoError(t, err)
	n := 0
	for l := range bytes.Lines(b) {
		raw := jsonscan.Get(l, "initialize")
		if isNull(raw) {
			continue
		}
		n++
		at := "claude/options-map.ndjson:" + jsonscan.Text(jsonscan.Get(l, "case"))
		var r InitializeRequest
		require.NoError(t, json.Unmarshal(raw, &r), at)
		again, err := MarshalRequest(r, SubtypeOnly)
		require.NoError(t, err, at)
		checkKept(t, raw, again, reflect.TypeOf(r), at)
	}
	assert.Greater(t, n, 50)
}

func checkEnvelope(t testing.TB, f Frame, at string) {
	t.Helper()
	want := envelopeOf(f.Raw)
	assert.Equal(t, want, envelope{f.Type, f.Subtype, f.RequestID, f.UUID(), f.SessionID(), f.ParentToolUseID(), f.Replay}, at)
}

// envelope is what ParseFrame finds.
type envelope struct {
	typ, subtype, id, uuid, session, parent string
	replay                                  bool
}

// envelopeOf finds the same by encoding/json.
func envelopeOf(line []byte) envelope {
	str := func(m map[string]json.RawMessage, key string) string {
		var s string
		if json.Unmarshal(m[key], &s) != nil {
			return ""
		}
		return s
	}
	var top, in map[string]json.RawMessage
	if json.Unmarshal(line, &top) != nil {
		return envelope{}
	}
	e := envelope{
		typ: str(top, "type"), uuid: str(top, "uuid"), session: str(top, "session_id"),
		parent: str(top, "parent_tool_use_id"), subtype: str(top, "subtype"),
	}
	switch e.typ {
	case TypeControlRequest:
		e.id, e.subtype = str(top, "request_id"), ""
		if json.Unmarshal(top["request"], &in) == nil {
			if e.subtype = str(in, "subtype"); e.subtype == "" {
				e.subtype = str(in, "type")
			}
		}
	case TypeControlResponse:
		e.subtype = ""
		if json.Unmarshal(top["response"], &in) == nil {
			e.subtype, e.id = str(in, "subtype"), str(in, "request_id")
		}
	case TypeControlCancel, TypeControlCancelAlias:
		e.id = str(top, "request_id")
	default:
		e.replay = string(top["isReplay"]) == "true"
	}
	return e
}

func checkMessage(t *testing.T, f Frame, at string) {
	t.Helper()
	m := DecodeMessage(f)
	require.Equal(t, string(f.Raw), string(m.Raw()), at)
	assert.Equal(t, f.UUID(), m.Meta().UUID, at)
	assert.Equal(t, f.SessionID(), m.Meta().SessionID, at)
	if u, ok := m.(*UnknownMessage); ok {
		require.NoError(t, u.Err, at)
		assert.True(t, deliberate[wireName(f.Type, f.Subtype)], "unknown: %s", at)
		return
	}
	typ, subtype := m.wire()
	assert.Equal(t, f.Type, typ, at)
	assert.Equal(t, f.Subtype, subtype, at)
	checkContent(t, m, at)
	again, err := MarshalMessage(m)
	require.NoError(t, err, at)
	checkKept(t, f.Raw, again, reflect.TypeOf(m), at)
	if u, ok := m.(*UserMessage); ok {
		line, err := AppendUserLine(nil, u, SessionIDAlways)
		require.NoError(t, err, at)
		checkKept(t, f.Raw, line, reflect.TypeOf(m), at)
	}
}

// checkContent fails on blocks, events and deltas that are not known.
func checkContent(t *testing.T, m Message, at string) {
	t.Helper()
	var content Content
	switch m := m.(type) {
	case *AssistantMessage:
		content = m.Message.Content
	case *UserMessage:
		content = m.Message.Content
	case *PartialAssistantMessage:
		assert.IsNotType(t, &UnknownEvent{}, m.Event, at)
		if e, ok := m.Event.(*ContentBlockDelta); ok {
			assert.IsNotType(t, &DeltaUnknown{}, e.Delta, at)
		}
		if e, ok := m.Event.(*ContentBlockStart); ok {
			content = Content{e.Block}
		}
	}
	for _, b := range content {
		assert.IsNotType(t, &UnknownBlock{}, b, at)
	}
}

func checkRequest(t *testing.T, l recorded, f Frame, at string) {
	t.Helper()
	var r Request
	var err error
	var unknown bool
	if l.agent {
		r, err = DecodeAgentRequest(f)
		_, unknown = r.(*UnknownAgentRequest)
	} else {
		r, err = DecodeHostRequest(f)
		_, unknown = r.(*UnknownHostRequest)
	}
	if misread[l.file+" "+f.Subtype] && err != nil {
		return
	}
	require.NoError(t, err, at)
	assert.Equal(t, deliberateRequests[f.Subtype], unknown, "unknown: %s", at)
	assert.Equal(t, f.Subtype, r.Subtype(), at)
	if unknown {
		return
	}
	for _, d := range []Discriminator{SubtypeOnly, TypeAndSubtype} {
		again, err := MarshalRequest(r, d)
		require.NoError(t, err, at)
		line, err := AppendControlRequest(nil, f.RequestID, again)
		require.NoError(t, err, at)
		g, err := ParseFrame(line[:len(line)-1])
		require.NoError(t, err, at)
		assert.Equal(t, f.Subtype, g.Subtype, at)
		checkKept(t, f.Body(), again, reflect.TypeOf(r), at)
	}
	if h, ok := r.(*HookCallbackRequest); ok {
		in, err := DecodeHookInput(h.Input)
		require.NoError(t, err, at)
		if in.Event() != "" {
			assert.IsNotType(t, &UnknownHookInput{}, in, at)
		}
		again, err := Marshal(in)
		require.NoError(t, err, at)
		checkKept(t, h.Input, again, reflect.TypeOf(in), at)
	}
}

func checkResponse(t *testing.T, f Frame, kind, at string) {
	t.Helper()
	r, err := DecodeControlResponse(f)
	require.NoError(t, err, at)
	var want struct {
		Response struct {
			Error     string
			Pending   []json.RawMessage `json:"pending_permission_requests"`
			ErrorCode string            `json:"error_code"`
			Code      string
		}
	}
	require.NoError(t, json.Unmarshal(f.Raw, &want), at)
	assert.Equal(t, want.Response.Error, r.Error, at)
	assert.Len(t, r.PendingPermissionRequests, len(want.Response.Pending), at)
	for _, p := range r.PendingPermissionRequests {
		a, err := DecodeAgentRequest(p)
		require.NoError(t, err, at)
		assert.IsType(t, &CanUseToolRequest{}, a, at)
		assert.NotEmpty(t, p.RequestID, at)
	}
	if r.Failed() {
		if code := want.Response.ErrorCode + want.Response.Code; want.Response.ErrorCode == "" || want.Response.Code == "" {
			if code != "" {
				assert.Equal(t, code, r.ErrorCode, at)
			}
		}
		return
	}
	checkReply(t, r, kind, at)
}

func checkReply(t *testing.T, r *ControlResponse, kind, at string) {
	t.Helper()
	if isNull(r.Response) || r.Response[0] != '{' || string(r.Response) == "{}" {
		return
	}
	if deliberateRequests[kind] {
		return // a request that this recording does not hold
	}
	reply := newReply(kind)
	require.NotNil(t, reply, "no type for the answer to %s: %s", kind, at)
	require.NoError(t, r.Decode(reply), at)
	if p, ok := reply.(*PermissionResult); ok && p.Behavior != BehaviorAllow && p.Behavior != BehaviorDeny {
		p.Behavior = BehaviorDeny // a recording of a malformed answer
		return
	}
	again, err := Marshal(reply)
	require.NoError(t, err, at)
	checkKept(t, r.Response, again, reflect.TypeOf(reply), at)
}

// checkKept fails for what the typed form of a line has lost. A value that is
// null or zero may be left out, if the type has a field for it.
func checkKept(t *testing.T, before, after []byte, typ reflect.Type, at string) {
	t.Helper()
	file, _, _ := strings.Cut(at, ":")
	d := differ{tags: tagsOf(typ), skip: madeUp[file]}
	lost := d.diff("", generic(t, before), generic(t, after))
	assert.Empty(t, lost, "%s\n%T lost fields\nafter: %.600s", at, reflect.New(typ).Elem().Interface(), after)
}

// differ compares two JSON values.
type differ struct {
	tags map[string]bool // keys that the type has a field for
	skip map[string]bool // keys that may be lost
}

func (d differ) diff(path string, before, after any) []string {
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			return []string{path + " is not an object"}
		}
		var lost []string
		for k, v := range b {
			got, ok := a[k]
			switch {
			case path == "" && (k == "type" || k == "subtype"):
				// Checked by name.
			case ok:
				lost = append(lost, d.diff(path+"."+k, v, got)...)
			case d.skip[k] || madeUp[""][k]:
				// Not of the type.
			case !isZeroJSON(v):
				lost = append(lost, fmt.Sprintf("%s.%s = %v", path, k, v))
			case !d.tags[k]:
				lost = append(lost, fmt.Sprintf("%s.%s (no field; %v here)", path, k, v))
			}
		}
		return lost
	case []any:
		a, ok := after.([]any)
		if !ok || len(a) != len(b) {
			return []string{fmt.Sprintf("%s has other elements: %v, was %v", path, after, before)}
		}
		var lost []string
		for i := range b {
			lost = append(lost, d.diff(fmt.Sprintf("%s[%d]", path, i), b[i], a[i])...)
		}
		return lost
	case json.Number:
		a, ok := after.(json.Number)
		if !ok {
			return []string{fmt.Sprintf("%s is not a number", path)}
		}
		x, errX := b.Float64()
		y, errY := a.Float64()
		if errors.Join(errX, errY) != nil || x != y {
			return []string{fmt.Sprintf("%s = %s, was %s", path, a, b)}
		}
		return nil
	default:
		if before != after && !(isZeroJSON(before) && isZeroJSON(after)) {
			return []string{fmt.Sprintf("%s = %v, was %v", path, after, before)}
		}
		return nil
	}
}

func isZeroJSON(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		f, err := v.Float64()
		return err == nil && f == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// tagsOf returns the JSON keys of a type and of all that it can hold.
func tagsOf(t reflect.Type) map[string]bool {
	tags := map[string]bool{}
	collectTags(t, tags, map[reflect.Type]bool{})
	return tags
}

func collectTags(t reflect.Type, tags map[string]bool, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		collectTags(t.Elem(), tags, seen)
	case reflect.Interface:
		for _, v := range unionMembers() {
			if v.Implements(t) {
				collectTags(v, tags, seen)
			}
		}
	case reflect.Struct:
		if t == reflect.TypeFor[PermissionResult]() {
			t = reflect.TypeFor[permissionResultJSON]()
		}
		if t == reflect.TypeFor[ContentBlockStart]() || t == reflect.TypeFor[ContentBlockDelta]() {
			collectTags(reflect.TypeFor[contentBlockJSON](), tags, seen)
		}
		for i := range t.NumField() {
			f := t.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				tags[name] = true
			}
			collectTags(f.Type, tags, seen)
		}
	}
}

// unionMembers are the types that stand behind the package's interfaces.
func unionMembers() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[*TextBlock](), reflect.TypeFor[*ThinkingBlock](), reflect.TypeFor[*ToolUseBlock](),
		reflect.TypeFor[*ToolResultBlock](), reflect.TypeFor[*ImageBlock](),
		reflect.TypeFor[*MessageStart](), reflect.TypeFor[*ContentBlockStart](), reflect.TypeFor[*ContentBlockDelta](),
		reflect.TypeFor[*MessageDelta](), reflect.TypeFor[*DeltaText](), reflect.TypeFor[*DeltaInputJSON](),
		reflect.TypeFor[*PreToolUseOutput](), reflect.TypeFor[*PostToolUseOutput](), reflect.TypeFor[*PermissionRequestOutput](),
	}
}

// newReply returns the typed answer to a request, nil for one without a value.
func newReply(kind string) any {
	switch kind {
	case "can_use_tool":
		return new(PermissionResult)
	case "hook_callback":
		return new(HookJSONOutput)
	case "mcp_message":
		return new(MCPMessageReply)
	case "elicitation", "elicitation_response":
		return new(ElicitationResult)
	case "request_user_dialog":
		return new(UserDialogResult)
	case "get_model_policy":
		return new(ModelPolicyReply)
	case "fetch_job_token", "fetch_service_account_token":
		return new(TokenReply)
	case "memory_should_generate", "skill_evolution_should_review":
		return new(ShouldRunReply)
	case "initialize":
		return new(InitializeResponse)
	case "interrupt":
		return new(InterruptResponse)
	case "set_permission_mode":
		return new(SetPermissionModeResponse)
	case "set_model":
		return new(SetModelResponse)
	case "apply_flag_settings":
		return new(ApplyFlagSettingsResponse)
	case "get_settings":
		return new(SettingsResponse)
	case "get_context_usage":
		return new(ContextUsage)
	case "get_usage":
		return new(UsageReport)
	case "get_usage_info":
		return new(UsageInfo)
	case "read_file":
		return new(ReadFileResponse)
	case "rewind_files":
		return new(RewindFilesResponse)
	case "rewind":
		return new(RewindResponse)
	case "background_tasks":
		return new(BackgroundTasksResponse)
	case "cancel_async_message":
		return new(CancelAsyncMessageResponse)
	case "generate_session_title":
		return new(SessionTitleResponse)
	case "side_question":
		return new(SideQuestionResponse)
	case "get_models":
		return new(ModelsResponse)
	case "reload_plugins":
		return new(ReloadPluginsResponse)
	case "reload_skills":
		return new(ReloadSkillsResponse)
	case "reload_output_styles":
		return new(ReloadOutputStylesResponse)
	case "list_plugins":
		return new(PluginsResponse)
	case "account_info":
		return new(AccountInfoResponse)
	case "add_directories":
		return new(AddDirectoriesResponse)
	case "set_proxy":
		return new(ProxyResponse)
	case "mcp_status":
		return new(MCPStatusResponse)
	case "mcp_set_servers":
		return new(MCPSetServersResponse)
	case "mcp_read_resource":
		return new(MCPReadResourceResponse)
	case "mcp_authenticate":
		return new(MCPAuthenticateResponse)
	case "set_mcp_permission_mode_override":
		return new(MCPPermissionModeOverrideResponse)
	case "set_goal", "get_goal":
		return new(GoalResponse)
	case "clear_goal":
		return new(ClearGoalResponse)
	case "set_goal_max_turns":
		return new(GoalMaxTurnsResponse)
	case "set_plan_mode", "get_plan_mode":
		return new(PlanModeResponse)
	case "get_byok_config":
		return new(BYOKProvidersResponse)
	case "validate_byok_model", "check_byok_config":
		return new(SuccessResponse)
	case "list_byok_configs":
		return new(BYOKConfigsResponse)
	case "create_byok_config":
		return new(BYOKConfigResponse)
	case "enable_remote_projection", "disable_remote_projection":
		return new(RemoteProjectionResponse)
	}
	return nil
}

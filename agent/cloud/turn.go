package cloud

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// maxText is the limit of a turn's text. Text beyond it is in the events, not in the result.
const maxText = 16 << 20

// turn is what the events with one turn id have said.
type turn struct {
	id        string // "": events without an id
	born      int    // number of the event that was its first
	text      strings.Builder
	truncated bool
	usage     usage
	models    map[string]*modelUsage
	cost      float64
	idle      bool
	failure   string // of the turn, or of the session; "": none
}

// over reports whether nothing more is to come.
func (t *turn) over() bool { return t != nil && (t.idle || t.failure != "") }

// usage is the usage of a result, with the names and the order of the vendor's SDK 1.0.39.
type usage struct {
	CacheCreation struct {
		OneHour     int64 `json:"ephemeral_1h_input_tokens"`
		FiveMinutes int64 `json:"ephemeral_5m_input_tokens"`
	} `json:"cache_creation"`
	CacheCreationInputTokens int64  `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int64  `json:"cache_read_input_tokens"`
	InferenceGeo             string `json:"inference_geo"`
	InputTokens              int64  `json:"input_tokens"`
	Iterations               []any  `json:"iterations"`
	OutputTokens             int64  `json:"output_tokens"`
	ServerToolUse            struct {
		WebFetchRequests  int64 `json:"web_fetch_requests"`
		WebSearchRequests int64 `json:"web_search_requests"`
	} `json:"server_tool_use"`
	ServiceTier string `json:"service_tier"`
	Speed       string `json:"speed"`
}

// modelUsage is the usage of one model in a result.
type modelUsage struct {
	InputTokens              int64   `json:"inputTokens"`
	OutputTokens             int64   `json:"outputTokens"`
	CacheReadInputTokens     int64   `json:"cacheReadInputTokens"`
	CacheCreationInputTokens int64   `json:"cacheCreationInputTokens"`
	WebSearchRequests        int64   `json:"webSearchRequests"`
	CostUSD                  float64 `json:"costUSD"`
	ContextWindow            int64   `json:"contextWindow"`
	MaxOutputTokens          int64   `json:"maxOutputTokens"`
}

// add adds what another turn has used.
func (m *modelUsage) add(o *modelUsage) {
	m.InputTokens += o.InputTokens
	m.OutputTokens += o.OutputTokens
	m.CacheReadInputTokens += o.CacheReadInputTokens
	m.CacheCreationInputTokens += o.CacheCreationInputTokens
	m.WebSearchRequests += o.WebSearchRequests
	m.CostUSD += o.CostUSD
}

// Names of events that a result depends on. The service documents
// session.status_terminated; the vendor's SDK 1.0.39 knows only terminated.
const (
	eventUserMessage      = "user.message"
	eventAgentMessage     = "agent.message"
	eventModelEnd         = "span.model_request_end"
	eventIdle             = "session.status_idle"
	eventError            = "session.error"
	eventTerminated       = "terminated"
	eventStatusTerminated = "session.status_terminated"
)

// eventData is what is read of an event.
type eventData struct {
	Type    string          `json:"type"`
	TurnID  string          `json:"turn_id"`
	Content json.RawMessage `json:"content"`
	Error   json.RawMessage `json:"error"`
	Model   string          `json:"model"`
	Usage   json.RawMessage `json:"usage"`
	Cost    *float64        `json:"total_cost_usd"`
	CostUSD *float64        `json:"cost_usd"`
}

// readData reads an event's data. Members of an unexpected shape count as missing.
func readData(data []byte) eventData {
	var members map[string]json.RawMessage
	if protocol.Unmarshal(data, &members) != nil {
		return eventData{}
	}
	var d eventData
	read := func(name string, to any) { _ = protocol.Unmarshal(members[name], to) } // see above
	read("type", &d.Type)
	read("turn_id", &d.TurnID)
	read("model", &d.Model)
	read("total_cost_usd", &d.Cost)
	read("cost_usd", &d.CostUSD)
	d.Content, d.Error, d.Usage = members["content"], members["error"], members["usage"]
	return d
}

// take takes an event of the turn.
func (t *turn) take(name string, d *eventData) {
	switch name {
	case eventAgentMessage:
		text := textOf(d.Content)
		if room := maxText - t.text.Len(); len(text) > room {
			text, t.truncated = strings.ToValidUTF8(text[:max(room, 0)], ""), true
		}
		t.text.WriteString(text)
	case eventModelEnd:
		t.spend(d)
	case eventIdle:
		t.idle = true
	case eventError:
		t.failure = failureText(d.Error)
	case eventTerminated, eventStatusTerminated:
		t.failure = "The Cloud Agent session was terminated."
	}
}

// spend takes the usage of a request to a model: of each number the last value counts, and
// costs add up, as for the vendor's SDK 1.0.39 (observed).
func (t *turn) spend(d *eventData) {
	var u struct {
		Model       string   `json:"model"`
		Input       *int64   `json:"input_tokens"`
		Output      *int64   `json:"output_tokens"`
		CacheRead   *int64   `json:"cache_read_input_tokens"`
		CacheCreate *int64   `json:"cache_creation_input_tokens"`
		Cost        *float64 `json:"total_cost_usd"`
		CostUSD     *float64 `json:"cost_usd"`
		Server      struct {
			Search *int64 `json:"web_search_requests"`
			Fetch  *int64 `json:"web_fetch_requests"`
		} `json:"server_tool_use"`
	}
	if protocol.Unmarshal(d.Usage, &u) != nil {
		d.Usage = nil // no usage that can be read
	}
	set := func(to, from *int64) {
		if from != nil {
			*to = *from
		}
	}
	set(&t.usage.InputTokens, u.Input)
	set(&t.usage.OutputTokens, u.Output)
	set(&t.usage.CacheReadInputTokens, u.CacheRead)
	set(&t.usage.CacheCreationInputTokens, u.CacheCreate)
	set(&t.usage.ServerToolUse.WebSearchRequests, u.Server.Search)
	set(&t.usage.ServerToolUse.WebFetchRequests, u.Server.Fetch)
	cost := 0.0
	for _, c := range []*float64{u.CostUSD, u.Cost, d.CostUSD, d.Cost} { // the last one that is there counts
		if c != nil {
			cost = *c
		}
	}
	t.cost += cost
	model := cmp.Or(d.Model, u.Model)
	if model == "" {
		return
	}
	m := t.models[model]
	if m == nil {
		if m = new(modelUsage); t.models == nil {
			t.models = make(map[string]*modelUsage)
		}
		t.models[model] = m
	}
	set(&m.InputTokens, u.Input)
	set(&m.OutputTokens, u.Output)
	set(&m.CacheReadInputTokens, u.CacheRead)
	set(&m.CacheCreationInputTokens, u.CacheCreate)
	set(&m.WebSearchRequests, u.Server.Search)
	m.CostUSD += cost
}

// textOf is the text of a content: a string, or its text parts.
func textOf(content json.RawMessage) string {
	var text string
	if protocol.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []json.RawMessage
	if protocol.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, raw := range parts {
		var part struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if protocol.Unmarshal(raw, &part) == nil && part.Type == "text" {
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// failureText is what a session.error says: a text, or the message of an object.
func failureText(raw json.RawMessage) string {
	var text string
	if protocol.Unmarshal(raw, &text) == nil && text != "" {
		return text
	}
	var object struct {
		Message string `json:"message"`
	}
	if protocol.Unmarshal(raw, &object) == nil && object.Message != "" {
		return object.Message
	}
	return "Cloud Agent session failed."
}

// result is a result as it is written.
type result struct {
	Type              string                 `json:"type"`
	DurationMs        int64                  `json:"duration_ms"`
	DurationAPIMs     int64                  `json:"duration_api_ms"`
	NumTurns          int                    `json:"num_turns"`
	StopReason        *string                `json:"stop_reason"`
	TotalCostUSD      float64                `json:"total_cost_usd"`
	Usage             usage                  `json:"usage"`
	ModelUsage        map[string]*modelUsage `json:"modelUsage"`
	PermissionDenials []any                  `json:"permission_denials"`
	UUID              string                 `json:"uuid"`
	SessionID         string                 `json:"session_id"`
	Subtype           string                 `json:"subtype"`
	IsError           bool                   `json:"is_error"`
	Result            *string                `json:"result,omitempty"`
	Errors            []string               `json:"errors,omitempty"`
	APIErrorStatus    int                    `json:"api_error_status,omitempty"`
	UserMessageUUID   string                 `json:"user_message_uuid,omitempty"`
}

// resultOf is the result of a turn that is over; nil: one of which nothing is known.
func resultOf(t *turn) *result {
	r := &result{
		Type: "result", NumTurns: 1, Subtype: protocol.ResultSuccess,
		ModelUsage: map[string]*modelUsage{}, PermissionDenials: []any{},
	}
	if t == nil {
		t = &turn{}
	}
	r.Usage = t.usage
	r.Usage.Iterations, r.Usage.ServiceTier, r.Usage.Speed = []any{}, "standard", "standard"
	if t.failure != "" {
		return r.fail(t.failure)
	}
	text := t.text.String()
	r.Result = &text
	return r
}

// fail makes the result one of a failure.
func (r *result) fail(why string) *result {
	r.Subtype, r.IsError, r.Errors, r.Result = protocol.ResultErrorDuringExecution, true, []string{why}, nil
	return r
}

// spent is what all turns of the session have used.
type spent struct {
	cost   float64
	models map[string]*modelUsage
}

// add adds a turn that is over.
func (s *spent) add(t *turn) {
	if t == nil {
		return
	}
	s.cost += t.cost
	for _, name := range slices.Sorted(maps.Keys(t.models)) {
		if s.models == nil {
			s.models = make(map[string]*modelUsage)
		}
		if s.models[name] == nil {
			s.models[name] = new(modelUsage)
		}
		s.models[name].add(t.models[name])
	}
}

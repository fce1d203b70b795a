package embedded

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
)

// Asked implements [mcpclient.Caller].
func (m *server) Asked(_ context.Context, q *jsonrpc.Request) (json.RawMessage, error) {
	switch q.Method {
	case "roots/list":
		roots := []any{}
		for _, at := range m.of.roots() {
			roots = append(roots, agent.Object{"uri": at})
		}
		return agent.Object{"roots": roots}.MarshalJSON()
	case "elicitation/create":
		return m.elicit(q.Params)
	}
	return nil, fmt.Errorf("this agent does not serve %s", q.Method)
}

// elicit asks the host by way of the call that was made last, while a call is open: a server does not
// say which call a question is about. Without an open call the answer is a refusal.
func (m *server) elicit(params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Message string          `json:"message"`
		Mode    string          `json:"mode"`
		URL     string          `json:"url"`
		ID      string          `json:"elicitationId"`
		Schema  json.RawMessage `json:"requestedSchema"`
	}
	if err := protocol.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	m.mu.Lock()
	var last *asking
	if n := len(m.asks); n > 0 {
		last = m.asks[n-1]
	}
	open := m.open
	m.mu.Unlock()
	declined := json.RawMessage(`{"action":"decline"}`)
	if last == nil || last.ask == nil {
		return declined, nil
	}
	if p.Mode == "" {
		p.Mode = "form"
	}
	request := agent.Object{"subtype": "elicitation", "mcp_server_name": m.name, "message": p.Message, "mode": p.Mode}
	if len(p.Schema) > 0 {
		request["requested_schema"] = p.Schema
		request["property_order"] = propertiesOf(p.Schema)
	}
	if p.URL != "" {
		request["url"], request["elicitation_id"] = p.URL, p.ID
	}
	a, err := last.ask(open, request)
	if err != nil || !a.OK || len(a.Body) == 0 {
		return declined, nil //nolint:nilerr // the server learns nothing of the host's errors
	}
	return a.Body, nil
}

// propertiesOf are the names of a schema's properties, in their order.
func propertiesOf(schema json.RawMessage) []string {
	names := []string{}
	for key, value := range protocol.Members(schema) {
		if string(key) != "properties" {
			continue
		}
		for name := range protocol.Members(value) {
			names = append(names, string(name))
		}
	}
	return names
}

package sharedmcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Asked implements [mcpclient.Caller]: what the session answers.
func (v *sharedView) Asked(ctx context.Context, m *jsonrpc.Request) (json.RawMessage, error) {
	switch m.Method {
	case "roots/list":
		type root struct {
			URI string `json:"uri"`
		}
		roots := []root{}
		for _, dir := range append([]string{v.opts.Cwd}, v.opts.AdditionalDirectories...) {
			path, err := filepath.Abs(dir)
			if err != nil {
				return nil, err
			}
			roots = append(roots, root{(&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()})
		}
		return json.Marshal(map[string]any{"roots": roots})
	case "elicitation/create":
		return v.elicit(ctx, m.Params)
	}
	return nil, fmt.Errorf("sessions do not serve %s to shared MCP servers", m.Method)
}

// elicit asks Options.OnElicitation. Without it the answer is a refusal, as of any session.
func (v *sharedView) elicit(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	answer := protocol.ElicitationResult{Action: protocol.ElicitDecline}
	if ask := v.opts.OnElicitation; ask != nil {
		var p struct {
			Message string          `json:"message"`
			Mode    string          `json:"mode"`
			URL     string          `json:"url"`
			ID      string          `json:"elicitationId"`
			Schema  json.RawMessage `json:"requestedSchema"`
		}
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		request := &protocol.ElicitationRequest{
			MCPServerName: v.server.name, Message: p.Message, Mode: p.Mode, URL: p.URL, ElicitationID: p.ID, RequestedSchema: p.Schema,
		}
		answer = answered(ctx, ask, request)
	}
	return json.Marshal(answer)
}

// answered is what the user's function answers. If it fails or panics, the answer is a
// refusal: the server learns nothing of the host's errors.
func answered(ctx context.Context, ask session.ElicitationHandler, request *protocol.ElicitationRequest) (answer protocol.ElicitationResult) {
	refused := protocol.ElicitationResult{Action: protocol.ElicitDecline}
	defer func() {
		if recover() != nil {
			answer = refused
		}
	}()
	answer, err := ask(ctx, request)
	if err != nil {
		return refused
	}
	return answer
}

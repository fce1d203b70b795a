package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/protocol"
)

// JSON-RPC error codes.
const (
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// RPCError is an error of the JSON-RPC level.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *RPCError) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message) }

type rpcMessage struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *RPCError       `json:"error,omitempty"`
}

// callsTool reports whether what goes wrong is told to the model as a result.
func (m *rpcMessage) callsTool() bool { return m.Method == "tools/call" }

// toolCall is what the bridge reads of the params of tools/call.
type toolCall struct {
	Name string `json:"name"`
	Meta struct {
		ProgressToken json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
}

func (m *rpcMessage) toolCall() (c toolCall) {
	if m.callsTool() {
		_ = json.Unmarshal(m.Params, &c) // the server reports bad params itself
	}
	return c
}

// failed is the reply to a request that a server failed: the model reads why a
// tool failed, the agent why anything else did.
func failed(m *rpcMessage, text string) rpcMessage {
	reply := rpcMessage{JSONRPC: "2.0", ID: m.ID}
	if m.callsTool() {
		reply.Result = ErrorResult(text)
	} else {
		reply.Error = &RPCError{Code: CodeInternal, Message: text}
	}
	return reply
}

func wrap(reply any) (json.RawMessage, error) {
	return json.Marshal(struct {
		Response any `json:"mcp_response"`
	}{reply})
}

// Notification is the message of the host's own mcp_message request.
func Notification(method string, params json.RawMessage) (json.RawMessage, error) {
	return json.Marshal(rpcMessage{JSONRPC: "2.0", Method: method, Params: params})
}

// ErrorResult is a tool result that tells the model what went wrong.
func ErrorResult(text string) json.RawMessage {
	b, _ := json.Marshal(map[string]any{ // strings only: cannot fail, keys are sorted
		"content": []any{map[string]string{"type": "text", "text": text}},
		"isError": true,
	})
	return b
}

// Denial answers a request that no server will: a tool call gets a result with
// isError, anything else an error.
func Denial(r *ledger.Request, reason string) (response json.RawMessage, errText string) {
	req, err := protocol.DecodeAgentRequest(r.Frame)
	if ask, ok := req.(*protocol.MCPMessageRequest); err == nil && ok {
		var m rpcMessage
		if json.Unmarshal(ask.Message, &m) == nil && m.callsTool() && len(m.ID) > 0 {
			if response, err := wrap(failed(&m, reason)); err == nil {
				return response, ""
			}
		}
	}
	return nil, reason
}

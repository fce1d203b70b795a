package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
)

// JSON-RPC error codes.
const (
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// RPCError is a JSON-RPC error.
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

// readRPC reads a message.
func readRPC(raw json.RawMessage) (m rpcMessage, err error) {
	err = protocol.Unmarshal(raw, &m)
	return m, err
}

// callsTool reports whether the model gets a failure as a result.
func (m *rpcMessage) callsTool() bool { return m.Method == "tools/call" }

// toolCall reads the tool's name from the params of tools/call, and the token of
// the progress that the agent wants to hear of. The server reports bad params
// itself.
func (m *rpcMessage) toolCall() (name string, token json.RawMessage) {
	if !m.callsTool() {
		return "", nil
	}
	for key, value := range protocol.Members(m.Params) {
		switch string(key) {
		case "name":
			name, _ = protocol.StringValue(value)
		case "_meta":
			for key, value := range protocol.Members(value) {
				if string(key) == "progressToken" {
					token = value
				}
			}
		}
	}
	return name, token
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

// wrapResult is wrap for the usual reply. id and result are valid JSON.
func wrapResult(id, result json.RawMessage) json.RawMessage {
	const open, middle, end = `{"mcp_response":{"jsonrpc":"2.0","id":`, `,"result":`, `}}`
	b := make([]byte, 0, len(open)+len(id)+len(middle)+len(result)+len(end))
	b = append(append(b, open...), id...)
	return append(append(append(b, middle...), result...), end...)
}

// Notification returns the JSON-RPC message of a notification to the agent.
func Notification(method string, params json.RawMessage) (json.RawMessage, error) {
	return json.Marshal(rpcMessage{JSONRPC: "2.0", Method: method, Params: params})
}

// ErrorResult returns a tool result with isError, whose text the model reads.
func ErrorResult(text string) json.RawMessage {
	b, _ := json.Marshal(map[string]any{ // strings only: cannot fail, keys are sorted
		"content": []any{map[string]string{"type": "text", "text": text}},
		"isError": true,
	})
	return b
}

// Denial returns the answer to a request that no server answers: a result with isError
// for a tool call, an error for any other request.
func Denial(f protocol.Frame, reason string) (response json.RawMessage, errText string) {
	req, err := protocol.DecodeAgentRequest(f)
	if ask, ok := req.(*protocol.MCPMessageRequest); err == nil && ok {
		var m rpcMessage
		if protocol.Unmarshal(ask.Message, &m) == nil && m.callsTool() && len(m.ID) > 0 {
			if response, err := wrap(failed(&m, reason)); err == nil {
				return response, ""
			}
		}
	}
	return nil, reason
}

package mcp

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/protocol"
)

// TestMessagesAreThoseOfJSON: the way past encoding/json reads what it reads.
func TestMessagesAreThoseOfJSON(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"x","result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`,
		`{"id":null,"method":"m"}`, `{"method":7}`, `{"jsonrpc":2,"method":"m"}`, `{"METHOD":"m"}`, `{"method":"m","METHOD":"n"}`, `{"id":1,"method":"m","ID":2,"x":1}`, `{"method":"m","extra":[1]}`,
		`{"method":null}`, `{"method":"m","params":null}`, `{}`, `null`, `[]`, `"x"`, `7`, ` { "id" : 1 , "method" : "\u006d" } `,
	} {
		var want rpcMessage
		wantErr := protocol.Unmarshal([]byte(raw), &want)
		got, err := readRPC(json.RawMessage(raw))
		assert.Equal(t, wantErr, err, raw)
		assert.Equal(t, want, got, raw)
	}
}

func TestTheUsualReplyIsThatOfJSON(t *testing.T) {
	t.Parallel()
	id, result := json.RawMessage(`"x"`), json.RawMessage(`{"content":[]}`)
	want, err := wrap(rpcMessage{JSONRPC: "2.0", ID: id, Result: result})
	assert.NoError(t, err)
	assert.Equal(t, string(want), string(wrapResult(id, result)))
}

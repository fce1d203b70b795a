package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp"
)

// Whatever is read: the connection ends without an error, each line that it writes is one
// JSON object, and what follows is answered.
func FuzzConn(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":[1,null]}}`, `{"id":`, `[]`, `null`, "\r\n\r\n", `{"id":1,"result":null}`,
		`{"method":"$/cancel_request","params":{"requestId":1}}`, `{"id":1.5e3,"method":"echo"}`, "{\"id\":\"\xff\",\"method\":\"echo\"}", `{"id":1,"method":7}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		in := append(append([]byte(nil), data...), "\n{\"id\":\"the end\",\"method\":\"echo\",\"params\":{}}\n"...)
		c := acp.NewConn(bytes.NewReader(in), &out, acp.Handler{Request: echo}, acp.ConnOptions{MaxLine: 1 << 10, Go: func(f func()) { go f() }})
		require.NoError(t, c.Serve(context.Background()))
		last := ""
		for s := bufio.NewScanner(bytes.NewReader(out.Bytes())); s.Scan(); {
			var m map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(s.Bytes(), &m), "%s", s.Text())
			if string(m["id"]) == `"the end"` {
				last = s.Text()
			}
		}
		assert.NotEmpty(t, last, "the last request has no answer")
	})
}

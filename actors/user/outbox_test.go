package user_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
)

func TestCallsAndMessagesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	send := func(uuid string) {
		_, err := r.Send(context.Background(), &protocol.UserMessage{Common: protocol.Common{UUID: uuid}})
		require.NoError(t, err)
	}
	call := func(subtype string) {
		_, err := r.Call(subtype, json.RawMessage(`{"subtype":"`+subtype+`"}`), 0)
		require.NoError(t, err)
	}
	send("one")
	call("set_model")
	send("two")
	call("interrupt")
	lines := r.wrote()
	require.Len(t, lines, 4)
	for i, want := range []string{"one", "set_model", "two", "interrupt"} {
		assert.Contains(t, lines[i], want)
	}
}

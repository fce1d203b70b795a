package view

import (
	"bytes"
	"testing"

	"github.com/agent-troupe/troupe/protocol"
)

// FuzzViews feeds the views whatever an agent may write.
func FuzzViews(f *testing.F) {
	// Small inputs: the fuzzer takes long to shorten large ones.
	for _, seed := range []string{
		`{"type":"stream_event","event":{"type":"content_block_start"}}`,
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}}}
{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"Agent","input":{}}}}
{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}}
{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Agent","input":{}}]}}
{"type":"stream_event","event":{"type":"message_stop"},"abandoned_blocks":{"api_message_id":"m","from_block_index":0}}`,
		`{"type":"system","subtype":"task_started","task_id":"k","tool_use_id":"t","parent_task_id":"k","task_type":"local_agent"}
{"type":"assistant","parent_tool_use_id":"t","agent_id":"k","message":{"content":[{"type":"tool_use","id":"t","name":"Task","input":{}}]}}
{"type":"user","tool_use_result":{"agentId":"k","status":"async_launched"},"message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}
{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"k"}]}
{"type":"system","subtype":"task_notification","task_id":"k","tool_use_id":"t","status":"completed"}`,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"TaskUpdate","input":{"taskId":"1","addBlocks":["1"]}}]}}
{"type":"user","tool_use_result":{"success":true},"message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}
{"type":"result","subtype":"success","total_cost_usd":1e308,"modelUsage":{"a":{"costUSD":-1}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var messages []protocol.Message
		for l := range bytes.Lines(data) {
			if frame, err := protocol.ParseFrame(bytes.TrimSpace(l)); err == nil {
				messages = append(messages, protocol.DecodeMessage(frame))
			}
		}
		_ = summary(append(messages, messages...)) // and told again
		_ = TodoEntries(messages...)
	})
}

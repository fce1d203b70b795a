package view

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
)

// wire sends a message over the wire and back.
func wire(t require.TestingT, m protocol.Message) protocol.Message {
	line, err := protocol.MarshalMessage(m)
	require.NoError(t, err)
	f, err := protocol.ParseFrame(line[:len(line)-1])
	require.NoError(t, err)
	back := protocol.DecodeMessage(f)
	require.IsType(t, m, back)
	return back
}

func event(parent string, e protocol.StreamEvent) *protocol.PartialAssistantMessage {
	return &protocol.PartialAssistantMessage{Common: protocol.Common{ParentToolUseID: parent}, Event: e}
}

func line(parent, id, uuid string, blocks ...protocol.ContentBlock) *protocol.AssistantMessage {
	return &protocol.AssistantMessage{
		Common:  protocol.Common{UUID: uuid, ParentToolUseID: parent},
		Message: protocol.APIMessage{ID: id, Role: "assistant", Content: blocks},
	}
}

// drawBlock draws a block with the events that stream it.
func drawBlock(t *rapid.T, index int) (protocol.ContentBlock, []protocol.StreamEvent) {
	text := rapid.StringOfN(rapid.Rune(), 0, 30, -1).Draw(t, "text")
	delta := func(d protocol.Delta) protocol.StreamEvent {
		return &protocol.ContentBlockDelta{Index: index, Delta: d}
	}
	var whole, start protocol.ContentBlock
	var deltas []protocol.StreamEvent
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		b := &protocol.TextBlock{Text: text}
		for _, piece := range pieces(t, text) {
			deltas = append(deltas, delta(&protocol.DeltaText{Text: piece}))
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "citations") {
			citation := json.RawMessage(fmt.Sprintf(`{"cited":%d}`, i))
			b.Citations = appended(b.Citations, citation)
			deltas = append(deltas, delta(&protocol.DeltaCitations{Citation: citation}))
		}
		whole, start = b, &protocol.TextBlock{}
	case 1:
		for _, piece := range pieces(t, text) {
			deltas = append(deltas, delta(&protocol.DeltaThinking{Thinking: piece}))
		}
		deltas = append(deltas, delta(&protocol.DeltaSignature{Signature: "sig"}))
		whole, start = &protocol.ThinkingBlock{Thinking: text, Signature: "sig"}, &protocol.ThinkingBlock{}
	case 2:
		whole = &protocol.RedactedThinkingBlock{Data: "secret"}
		start = whole
	case 3: // no input at all
		whole = &protocol.ToolUseBlock{ID: fmt.Sprint("t", index), Name: "TaskList", Input: json.RawMessage("{}")}
		start = whole
	default:
		input, err := json.Marshal(map[string]any{"command": text, "n": index})
		require.NoError(t, err)
		for _, piece := range pieces(t, string(input)) {
			deltas = append(deltas, delta(&protocol.DeltaInputJSON{PartialJSON: piece}))
		}
		id := fmt.Sprint("t", index)
		whole, start = &protocol.ToolUseBlock{ID: id, Name: "Bash", Input: input}, &protocol.ToolUseBlock{ID: id, Name: "Bash", Input: json.RawMessage("{}")}
	}
	return whole, append([]protocol.StreamEvent{&protocol.ContentBlockStart{Index: index, Block: start}}, deltas...)
}

// pieces cuts a string anywhere between its runes.
func pieces(t *rapid.T, s string) []string {
	var out []string
	for rest := []rune(s); len(rest) > 0; {
		n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
		out = append(out, string(rest[:n]))
		rest = rest[n:]
	}
	return out
}

// TestAssembledIsWhole: what is made of the pieces of a message equals the
// message, with the agent's assistant lines among the pieces, or some of them,
// or none.
func TestAssembledIsWhole(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Text-Streaming", "claude/feature/Thinking-Blocks")
	rapid.Check(t, func(t *rapid.T) {
		var d Drafts
		var want [2]protocol.Content
		parents := [2]string{"", "toolu_1"}
		// A subagent writes while the main agent does.
		var queues [2][]protocol.Message
		for w, parent := range parents {
			q := []protocol.Message{event(parent, &protocol.MessageStart{Message: protocol.APIMessage{ID: "msg", Role: "assistant", Content: protocol.Content{}}})}
			for i := range rapid.IntRange(0, 4).Draw(t, "blocks") {
				block, events := drawBlock(t, i)
				want[w] = append(want[w], block)
				for _, e := range events {
					q = append(q, event(parent, e))
				}
				stop := event(parent, &protocol.ContentBlockStop{Index: i})
				told := line(parent, "msg", fmt.Sprint("u", w, i), block)
				switch rapid.IntRange(0, 3).Draw(t, "line") {
				case 0:
					q = append(q, stop)
				case 1:
					q = append(q, stop, told)
				case 2:
					q = append(q, told, stop, told) // and told again
				default:
					q = append(q, told, stop)
				}
			}
			q = append(q, event(parent, &protocol.MessageDelta{Delta: protocol.MessageDeltaBody{StopReason: "end_turn"}, Usage: &protocol.Usage{OutputTokens: 7}}),
				event(parent, &protocol.MessageStop{}))
			queues[w] = q
		}
		for len(queues[0])+len(queues[1]) > 0 {
			w := rapid.IntRange(0, 1).Draw(t, "who")
			if len(queues[w]) == 0 {
				w = 1 - w
			}
			d.Add(wire(t, queues[w][0]))
			queues[w] = queues[w][1:]
		}
		require.Len(t, d.All(), 2)
		for _, draft := range d.All() {
			w := 0
			if draft.ParentToolUseID != "" {
				w = 1
			}
			require.Equal(t, encode(t, want[w]), encode(t, draft.Content()))
			require.True(t, draft.Done)
			require.Equal(t, "end_turn", draft.StopReason)
			require.EqualValues(t, 7, draft.Usage.OutputTokens)
		}
	})
}

// TestDroppedPieces: partial messages may be dropped without a reader. Whole messages
// come all the same, and stay.
func TestDroppedPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var d Drafts
		want := map[string]protocol.Content{}
		for w := range 3 {
			id := fmt.Sprint("msg", w)
			feed := func(e protocol.StreamEvent) {
				if !rapid.Bool().Draw(t, "dropped") {
					m := event("", e)
					m.APIMessageID = id
					d.Add(wire(t, m))
				}
			}
			feed(&protocol.MessageStart{Message: protocol.APIMessage{ID: id, Role: "assistant", Content: protocol.Content{}}})
			for i := range rapid.IntRange(1, 3).Draw(t, "blocks") {
				block, events := drawBlock(t, i)
				for _, e := range events {
					feed(e)
				}
				d.Add(wire(t, line("", id, fmt.Sprint("u", w, i), block)))
				feed(&protocol.ContentBlockStop{Index: i})
				want[id] = append(want[id], block)
			}
			feed(&protocol.MessageStop{})
		}
		require.Len(t, d.All(), 3)
		for _, draft := range d.All() {
			require.Equal(t, encode(t, want[draft.ID]), encode(t, draft.Content()))
		}
	})
}

func encode(t require.TestingT, c protocol.Content) string {
	if c == nil {
		c = protocol.Content{}
	}
	b, err := json.Marshal(c)
	require.NoError(t, err)
	return string(b)
}

func add(d *Drafts, messages ...protocol.Message) (last *Draft) {
	for _, m := range messages {
		last = d.Add(m)
	}
	return last
}

func TestInputWhileItIsWritten(t *testing.T) {
	t.Parallel()
	var d Drafts
	tool := &protocol.ToolUseBlock{ID: "t", Name: "Bash", Input: json.RawMessage("{}")}
	draft := add(&d, event("", &protocol.MessageStart{Message: protocol.APIMessage{ID: "m"}}),
		event("", &protocol.ContentBlockStart{Index: 0, Block: tool}),
		event("", &protocol.ContentBlockDelta{Index: 0, Delta: &protocol.DeltaInputJSON{PartialJSON: `{"comm`}}))
	assert.Equal(t, `{"comm`, draft.Blocks[0].PartialInput)
	assert.False(t, draft.Blocks[0].Complete)
	assert.JSONEq(t, `[{"type":"tool_use","id":"t","name":"Bash","input":{}}]`, encode(t, draft.Content()))
	// The stream breaks off: the input so far is not JSON.
	draft = add(&d, event("", &protocol.MessageStop{}))
	assert.Equal(t, `{"comm`, draft.Blocks[0].PartialInput)
	assert.JSONEq(t, "{}", string(tool.Input), "the event's own block was changed")
}

func TestAbandonedBlocksGo(t *testing.T) {
	t.Parallel()
	var d Drafts
	stop := event("", &protocol.MessageStop{})
	stop.AbandonedBlocks = &protocol.AbandonedBlocks{APIMessageID: "m", FromBlockIndex: 1}
	draft := add(&d, event("", &protocol.MessageStart{Message: protocol.APIMessage{ID: "m"}}),
		event("", &protocol.ContentBlockStart{Index: 0, Block: &protocol.TextBlock{Text: "kept"}}),
		line("", "m", "u", &protocol.TextBlock{Text: "kept"}),
		event("", &protocol.ContentBlockStop{Index: 0}),
		event("", &protocol.ContentBlockStart{Index: 1, Block: &protocol.TextBlock{Text: "go"}}),
		event("", &protocol.ContentBlockStop{Index: 1}),
		stop)
	assert.Equal(t, "kept", draft.Content().Text())
	assert.True(t, draft.Aborted)
}

func TestJoinedTextRuns(t *testing.T) {
	t.Parallel()
	var d Drafts
	start := event("", &protocol.MessageStart{Message: protocol.APIMessage{ID: "m"}})
	start.TextRunsJoined = true
	draft := add(&d, start,
		event("", &protocol.ContentBlockStart{Index: 0, Block: &protocol.TextBlock{Text: "a"}}),
		event("", &protocol.ContentBlockStop{Index: 0}),
		event("", &protocol.ContentBlockStart{Index: 1, Block: &protocol.TextBlock{Text: "b"}}),
		event("", &protocol.ContentBlockStop{Index: 1}),
		line("", "m", "u", &protocol.TextBlock{Text: "ab"}))
	assert.JSONEq(t, `[{"type":"text","text":"ab"}]`, encode(t, draft.Content()))
}

func TestRetractedMessages(t *testing.T) {
	t.Parallel()
	var d Drafts
	d.Add(line("", "m1", "u1", &protocol.TextBlock{Text: "no"}))
	d.Add(line("", "m2", "u2", &protocol.TextBlock{Text: "half"}))
	assert.Equal(t, "m1", d.Add(&protocol.ModelRefusalFallbackMessage{RetractedMessageUUIDs: []string{"u1"}}).ID)
	again := line("", "m3", "u3", &protocol.TextBlock{Text: "whole"})
	again.Supersedes = []string{"u2"}
	d.Add(again)
	var kept []string
	for _, draft := range d.All() {
		if !draft.Retracted {
			kept = append(kept, draft.ID)
		}
	}
	assert.Equal(t, []string{"m3"}, kept)
	assert.Nil(t, d.Add(again), "told again")
}

func TestDraftsWithoutABeginning(t *testing.T) {
	t.Parallel()
	var d Drafts
	assert.Nil(t, d.Add(event("", &protocol.ContentBlockDelta{Delta: &protocol.DeltaText{Text: "x"}})))
	add(&d, event("", &protocol.MessageStart{Message: protocol.APIMessage{ID: "m"}}))
	assert.NotNil(t, d.Add(event("", &protocol.ContentBlockDelta{Index: 3, Delta: &protocol.DeltaText{Text: "x"}})))
	assert.Nil(t, d.Add(event("", &protocol.Ping{})))
	d.Forget()
	assert.Empty(t, d.All())
	assert.Nil(t, d.Add(event("", &protocol.ContentBlockDelta{Delta: &protocol.DeltaText{Text: "x"}})))
}

// A long block is not copied for each of its deltas.
func TestLongBlocksTakeTheirLength(t *testing.T) {
	for start, delta := range map[string]string{
		`{"type":"text","text":""}`:                              `{"type":"text_delta","text":"0123456789"}`,
		`{"type":"tool_use","id":"t","name":"Write","input":{}}`: `{"type":"input_json_delta","partial_json":"0123456789"}`,
	} {
		event := func(json string) protocol.Message {
			f, err := protocol.ParseFrame([]byte(`{"type":"stream_event","uuid":"u","session_id":"s","parent_tool_use_id":null,"event":` + json + `}`))
			require.NoError(t, err)
			return protocol.DecodeMessage(f)
		}
		begin := []protocol.Message{event(`{"type":"message_start","message":{"id":"m"}}`), event(`{"type":"content_block_start","index":0,"content_block":` + start + `}`)}
		more := event(`{"type":"content_block_delta","index":0,"delta":` + delta + `}`)
		allocs := testing.AllocsPerRun(1, func() {
			var d Drafts
			for _, m := range begin {
				d.Add(m)
			}
			for range 10_000 {
				d.Add(more)
			}
			require.Equal(t, 100_000, len(d.All()[0].Blocks[0].PartialInput)+len(textOf(d.All()[0])))
		})
		require.Less(t, allocs, 1000.0)
	}
}

func textOf(d *Draft) string {
	if b, ok := d.Blocks[0].Content.(*protocol.TextBlock); ok {
		return b.Text
	}
	return ""
}

package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/transcript"
)

// resumeCase is a file that Claude Code resumed, and what its model then saw.
type resumeCase struct {
	ID                string   `json:"id"`
	Base              string   `json:"base"`
	Keep              string   `json:"keep"`
	DropLastPrompts   bool     `json:"drop_last_prompt_lines"`
	Append            string   `json:"append"`
	Exit              int      `json:"exit"`
	ModelSaw          []string `json:"model_saw"`
	StartsWithNewline bool     `json:"starts_with_newline"`
	NewUserParent     string   `json:"new_user_parent"`
	RecoveryLines     []string `json:"recovery_lines"`
	ClaudeSDK         []string `json:"claude_sdk_messages"`
	QoderSDK          []string `json:"qoder_sdk_messages"`
}

// content makes the file of the case.
func (c *resumeCase) content(t *testing.T) []byte {
	var out []byte
	for line := range bytes.Lines(corpusData(t, c.Base)) {
		if c.Keep == "none" {
			break
		}
		if !c.DropLastPrompts || !bytes.Contains(line, []byte(`"type":"last-prompt"`)) {
			out = append(out, line...)
		}
		if c.Keep == "to-bash-done" && bytes.Contains(line, []byte(`"Bash done."`)) {
			break
		}
	}
	switch c.Append {
	case "$CRLF":
		return bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	case "$BOM":
		return append([]byte("\ufeff"), out...)
	}
	return append(out, c.Append...)
}

func resumeCases(t *testing.T) []resumeCase {
	var file struct{ Cases []resumeCase }
	readJSON(t, "claude-resume-cases.json", &file)
	require.Len(t, file.Cases, 21)
	return file.Cases
}

// TestResumed compares the conversation with what the model of the real program saw.
func TestResumed(t *testing.T) {
	t.Parallel()
	for _, c := range resumeCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			raw := c.content(t)
			tr, err := transcript.Index(bytes.NewReader(raw), int64(len(raw)), transcript.Claude)
			require.NoError(t, err)
			assert.Equal(t, c.StartsWithNewline, !tr.EndsWithNewline())
			r, err := tr.Resumed()
			if c.Exit != 0 {
				require.ErrorIs(t, err, transcript.ErrNoConversation)
				return
			}
			require.NoError(t, err)
			saw := modelSaw(t, r)
			for range r.Repairs.ToolUseIDs {
				saw = append(saw, "u:TR([Tool call interrupted...])")
			}
			if r.Repairs.NoResponse {
				saw = append(saw, "a:No response requested.")
			}
			assert.Equal(t, c.ModelSaw, append(saw, "u:NEXT"))
			assert.Equal(t, len(c.RecoveryLines) == 0, !r.Repairs.NoResponse)
			if len(c.RecoveryLines) == 0 {
				assert.Equal(t, c.NewUserParent, r.LeafUUID)
			}
		})
	}
}

// modelSaw returns the messages as the cases have them: lines of one answer are joined.
func modelSaw(t *testing.T, r *transcript.Resumption) []string {
	var out []string
	last := ""
	for m, err := range r.Messages() {
		require.NoError(t, err)
		content, err := m.Content()
		require.NoError(t, err)
		var parts []string
		for _, b := range content {
			switch b := b.(type) {
			case *protocol.TextBlock:
				parts = append(parts, b.Text)
			case *protocol.ToolUseBlock:
				parts = append(parts, "TU("+b.Name+")")
			case *protocol.ToolResultBlock:
				parts = append(parts, fmt.Sprintf("TR(%v)", resultText(b)))
			}
		}
		var body struct{ ID string }
		require.NoError(t, json.Unmarshal(m.Message, &body))
		row := m.Type[:1] + ":" + strings.Join(parts, "+")
		if m.Type == "assistant" && body.ID == last {
			out[len(out)-1] += "+" + strings.Join(parts, "+")
			continue
		}
		last = body.ID
		out = append(out, row)
	}
	return out
}

func resultText(b *protocol.ToolResultBlock) string {
	for _, c := range b.Content {
		if text, ok := c.(*protocol.TextBlock); ok {
			return text.Text
		}
	}
	return ""
}

// TestShownOfDamagedFiles compares the messages of the same files with what both vendors'
// SDKs show.
func TestShownOfDamagedFiles(t *testing.T) {
	t.Parallel()
	for _, c := range resumeCases(t) {
		for _, vendor := range []transcript.Vendor{transcript.Claude, transcript.Qoder} {
			t.Run(c.ID+"/"+string(vendor), func(t *testing.T) {
				t.Parallel()
				raw := c.content(t)
				tr, err := transcript.Index(bytes.NewReader(raw), int64(len(raw)), vendor)
				require.NoError(t, err)
				got := []string{}
				for m, err := range tr.Shown(transcript.ShownOptions{}) {
					require.NoError(t, err)
					row := m.Type[:1] + ":" + shortBlock(t, m)
					got = append(got, row)
				}
				want := c.ClaudeSDK
				if vendor == transcript.Qoder {
					want = c.QoderSDK
				}
				assert.Equal(t, want, got)
			})
		}
	}
}

func shortBlock(t *testing.T, m *transcript.Message) string {
	content, err := m.Content()
	require.NoError(t, err)
	switch b := content[0].(type) {
	case *protocol.TextBlock:
		return b.Text
	case *protocol.ToolUseBlock:
		return "TU(" + b.Name + ")"
	case *protocol.ToolResultBlock:
		return "TR"
	}
	return ""
}

// TestResumedSaysWhatItDid checks what the readers cannot see in the messages.
func TestResumedSaysWhatItDid(t *testing.T) {
	t.Parallel()
	for _, c := range resumeCases(t) {
		raw := c.content(t)
		tr, err := transcript.Index(bytes.NewReader(raw), int64(len(raw)), transcript.Claude)
		require.NoError(t, err)
		r, err := tr.Resumed()
		if errors.Is(err, transcript.ErrNoConversation) {
			continue
		}
		require.NoError(t, err)
		switch c.ID {
		case "pointer-to-older-branch":
			assert.True(t, r.Pointed)
			assert.Equal(t, "b8ac070e-b5ce-4b72-b591-d8202168c5a2", r.NewerBranch)
		case "missing-parent-no-pointer":
			assert.Equal(t, []transcript.Healed{{
				UUID: "1d000000-0000-4000-8000-000000000001", ParentUUID: "deadbeef-0000-4000-8000-000000000000",
				JoinedTo: "fc98ada2-01f2-45e4-827c-a699697421f6",
			}}, r.Healed)
		case "cycle-no-pointer":
			require.Len(t, r.Healed, 1)
			assert.Equal(t, "fc98ada2-01f2-45e4-827c-a699697421f6", r.Healed[0].JoinedTo)
		case "dangling-tool-use":
			assert.Equal(t, transcript.Repairs{ToolUseIDs: []string{"toolu_dangling"}, NoResponse: true}, r.Repairs)
		case "as-is", "crlf":
			assert.False(t, r.Pointed)
			assert.Empty(t, r.NewerBranch)
			assert.Empty(t, r.Healed)
			assert.Zero(t, r.Repairs)
		}
	}
}

package view

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
)

var update = flag.Bool("update", false, "write the golden files anew")

const recordings = "../testdata/traces"

// cutMark stands in a recorded list for the elements that were left out.
var cutMark = regexp.MustCompile(`^(…\+\d+ more|<\d+ more>)$`)

func uncut(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = uncut(e)
		}
	case []any:
		return slices.DeleteFunc(v, func(e any) bool {
			s, ok := e.(string)
			uncut(e)
			return ok && cutMark.MatchString(s)
		})
	}
	return v
}

// recorded are the agent's messages in a recording.
func recorded(t testing.TB, name string) []protocol.Message {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(recordings, name))
	require.NoError(t, err)
	var out []protocol.Message
	for l := range bytes.Lines(b) {
		var e struct {
			Dir string
			Msg json.RawMessage
		}
		if json.Unmarshal(l, &e) != nil || e.Dir != "cli->sdk" || len(e.Msg) == 0 || e.Msg[0] != '{' {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(e.Msg))
		d.UseNumber()
		var v any
		require.NoError(t, d.Decode(&v))
		line, err := json.Marshal(uncut(v))
		require.NoError(t, err)
		if f, err := protocol.ParseFrame(line); err == nil && !strings.HasPrefix(f.Type, "control_") {
			out = append(out, protocol.DecodeMessage(f))
		}
	}
	return out
}

func eachRecording(t *testing.T, f func(t *testing.T, name string, messages []protocol.Message)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(recordings, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".ndjson" {
			return err
		}
		name, err := filepath.Rel(recordings, path)
		require.NoError(t, err)
		n++
		f(t, filepath.ToSlash(name), recorded(t, name))
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, n, 300, "the recordings are missing")
}

// TestRecordings holds each view to what the recordings say otherwise.
func TestRecordings(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Tool-Calls", "claude/feature/Tool-Results")
	streams, replays := 0, 0
	eachRecording(t, func(t *testing.T, name string, messages []protocol.Message) {
		t.Helper()
		var (
			drafts      Drafts
			calls       ToolCalls
			costs       Costs
			level, edge Tasks
			agents      Agents
			whole       = map[string]protocol.Content{} // assistant lines by message
			ids         []string
			results     int
		)
		for _, m := range messages {
			drafts.Add(m)
			calls.Add(m)
			costs.Add(m)
			node := agents.Add(m)
			require.NotNil(t, node, name)
			switch m.(type) {
			case *protocol.AssistantMessage, *protocol.UserMessage:
				assert.Equal(t, m.Meta().ParentToolUseID, node.ToolUseID, "%s: %s", name, m.Raw())
			}
			level.Add(m)
			if _, ok := m.(*protocol.BackgroundTasksChangedMessage); !ok {
				edge.Add(m)
			}
			switch m := m.(type) {
			case *protocol.PartialAssistantMessage:
				streams++
			case *protocol.AssistantMessage:
				if m.Message.ID == "" {
					continue
				}
				id := m.ParentToolUseID + " " + m.Message.ID
				if whole[id] == nil {
					ids = append(ids, id)
				}
				whole[id] = append(whole[id], m.Message.Content...)
			case *protocol.UserMessage:
				if m.IsReplay {
					replays++
					assert.True(t, Replayed(m))
				}
				for _, r := range protocol.ToolResults(m) {
					call := calls.Get(r.ToolUseID)
					if call == nil {
						continue // of an earlier life
					}
					assert.Same(t, r, call.Result, name)
					assert.NotEqual(t, CallRunning, call.State, name)
					assert.Equal(t, r.IsError, call.State == CallFailed || call.State == CallDenied, "%s: %s", name, call.State)
				}
			case *protocol.SessionStateChangedMessage:
				if m.State == "idle" && !strings.Contains(name, "sdk-recorder") { // whose agent was made up
					assert.Equal(t, taskIDs(level.Background()), taskIDs(edge.Background()), name)
				}
			case *protocol.ResultMessage:
				results++
			}
		}
		sameMessages(t, name, drafts.All(), ids, whole)
		if results > 0 {
			assert.Zero(t, costs.Gap(), name)
			assert.Len(t, costs.Turns(), len(costs.seen), name)
		}
	})
	assert.Greater(t, streams, 50)
	assert.Greater(t, replays, 10)
}

func sameMessages(t *testing.T, name string, drafts []*Draft, ids []string, whole map[string]protocol.Content) {
	t.Helper()
	var got []string
	for _, d := range drafts {
		if d.ID == "" {
			continue
		}
		id := d.ParentToolUseID + " " + d.ID
		got = append(got, id)
		assert.Equal(t, encoded(t, whole[id]), encoded(t, d.Content()), "%s: %s", name, id)
		for _, b := range d.Blocks {
			assert.True(t, b.Complete, "%s: %s", name, id)
			assert.Empty(t, b.PartialInput)
		}
	}
	assert.Equal(t, ids, got, name)
}

func encoded(t testing.TB, c protocol.Content) string {
	t.Helper()
	if c == nil {
		c = protocol.Content{}
	}
	b, err := json.Marshal(c)
	require.NoError(t, err)
	return string(b)
}

func taskIDs(tasks []*Task) []string {
	out := []string{}
	for _, t := range tasks {
		out = append(out, t.ID)
	}
	slices.Sort(out)
	return out
}

// TestGolden compares what the views make of some recordings with files that a
// person has read. go test -update writes them.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"claude/agent_fwd", "claude/agentbg", "claude/agentfg_perm", "claude/bgbash", "claude/bgstop", "claude/cli-2.1.197/agentbg", "claude/cli-2.1.197/bgbash",
		"claude/compact", "claude/hook_pre_defer", "claude/interrupt_tool", "claude/parallel", "claude/plan", "claude/res_resume", "claude/slash_clear",
		"claude/subagent_kill_interrupt", "claude/toolprogress",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := summary(recorded(t, name+".ndjson"))
			path := filepath.Join("testdata", strings.ReplaceAll(name, "/", "_")+".txt")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

// summary is what the views make of messages, as text.
func summary(messages []protocol.Message) string {
	var (
		drafts Drafts
		calls  ToolCalls
		tasks  Tasks
		agents Agents
		costs  Costs
		status Status
		out    strings.Builder
	)
	for _, m := range messages {
		drafts.Add(m)
		calls.Add(m)
		agents.Add(m)
		status.Add(m)
		before := taskIDs(tasks.Background())
		tasks.Add(m)
		if after := taskIDs(tasks.Background()); !slices.Equal(before, after) {
			fmt.Fprintf(&out, "background %q\n", after)
		}
		if turn := costs.Add(m); turn != nil {
			fmt.Fprintf(&out, "turn %s: %.6f USD, models %d\n", turn.Result.Subtype, turn.USD, len(turn.Models))
		}
	}
	for _, d := range drafts.All() {
		fmt.Fprintf(&out, "message %s of %q done=%t aborted=%t stop=%q\n", d.ID, d.ParentToolUseID, d.Done, d.Aborted, d.StopReason)
		for _, b := range d.Blocks {
			fmt.Fprintf(&out, "  %s\n", b.Content.BlockType())
		}
	}
	for _, c := range calls.All() {
		in, _ := c.Input()
		o, _ := c.Output()
		fmt.Fprintf(&out, "call %s %s %s elapsed=%s in=%T out=%T\n", c.ID, c.Name, c.State, c.Elapsed, in, o)
	}
	for _, t := range tasks.All() {
		fmt.Fprintf(&out, "task %s %s of %q: %s, background=%t, %s tools=%d %q\n", t.ID, t.Type, t.ToolUseID, t.Status, t.Background, t.SubagentType, t.Usage.ToolUses, t.Summary)
	}
	agentTree(&out, agents.Root())
	fmt.Fprintf(&out, "spent %.6f before %.6f reported %.6f gap %v models %q\n", costs.Spent().USD, costs.Before().USD, costs.Reported().USD, costs.Gap(), costs.ModelNames())
	fmt.Fprintf(&out, "status %s mode=%s compactions=%d activity=%q\n", status.State, status.PermissionMode, status.Compactions, status.Activity)
	return out.String()
}

func agentTree(out *strings.Builder, n *AgentNode) {
	fmt.Fprintf(out, "%sagent %q %s %s messages=%d tools=%d\n", strings.Repeat("  ", n.Depth()), n.AgentID, n.Type, n.Status, n.Messages, n.Usage.ToolUses)
	for _, c := range n.Children {
		agentTree(out, c)
	}
}

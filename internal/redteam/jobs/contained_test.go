//go:build linux

// Linux: the attack mounts in a namespace.

package jobs

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func init() { helpers["contained"] = containedAgent }

// containedAgent is an agent of the Agent Client Protocol that can write its workspace alone.
func containedAgent() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	dir := ""
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cwd string }
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{}}}`+"\n", m.ID)
		case "session/new":
			dir = m.Params.Cwd
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}`+"\n", m.ID)
		case "session/prompt":
			said := "it is contained"
			if os.WriteFile(os.Getenv("REDTEAM2_PROOF")+".direct", nil, 0o600) == nil {
				said = "it is NOT contained"
			}
			evil := filepath.Join(dir, "evil")
			program := filepath.Join(dir, "program.sh")
			_ = os.WriteFile(program, []byte("#!/bin/sh\necho ran by $(id -un) >'"+os.Getenv("REDTEAM2_PROOF")+"'\n"), 0o700)
			_ = os.Mkdir(evil, 0o755)
			for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"}, {"config", "core.fsmonitor", program}} {
				if out, err := exec.Command("git", append([]string{"-C", evil}, args...)...).CombinedOutput(); err != nil {
					said += fmt.Sprintf("; git %v: %s", args[0], out)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+filepath.Join(evil, ".git")+"\n"), 0o600); err != nil {
				said += "; " + err.Error()
			}
			text, _ := json.Marshal(said)
			fmt.Printf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}}`+"\n", text)
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`+"\n", m.ID)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
		}
	}
}

// The same in a mount namespace, in which all but the workspace is read-only: what the agent
// cannot write, the host writes for it.
func TestHostGitLeavesTheContainerClosed(t *testing.T) {
	script := `mount --bind "$1" "$1" && mount -o remount,bind,ro / && shift && exec "$@"`
	if out, err := exec.Command("unshare", "-m", "sh", "-c", script, "sh", t.TempDir(), "true").CombinedOutput(); err != nil {
		t.Skipf("no mount namespaces here: %v %s", err, out)
	}
	repo, out := repository(t), t.TempDir()
	proof := filepath.Join(t.TempDir(), "proof")
	o := &sdk.Options{
		Backend: acpclient.Backend(os.Args[0]), Env: map[string]string{helperEnv: "contained", "REDTEAM2_PROOF": proof},
		Spawner: sdk.SpawnThrough(func(c *session.Command) ([]string, func(context.Context) error, error) {
			return append([]string{"unshare", "-m", "sh", "-c", script, "sh", c.Dir}, c.Argv()...), nil, nil
		}),
	}
	r := collect(t, fleet.Job{Tasks: []fleet.Task{{ID: "t", Prompt: "x"}}, Options: o, Out: out, Attempts: 1,
		Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: repo}})["t"]
	t.Log(r.Status, r.Error, r.Text)
	require.Contains(t, r.Text, "it is contained")
	if b, err := os.ReadFile(proof); err == nil {
		t.Errorf("the agent's program was run outside of the container: %s", b)
	}
}

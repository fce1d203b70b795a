package jobs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const evilText = "\x1b]52;c;ZXZpbA==\a\x1b[2J\u009b31m\u202e"

func init() { helpers["acp"] = hostileAgent }

// hostileAgent is an agent of the Agent Client Protocol whose texts steer a terminal, where
// REDTEAM2_WHERE says.
func hostileAgent() {
	in := bufio.NewScanner(os.Stdin)
	where := os.Getenv("REDTEAM2_WHERE")
	put := func(v any) {
		line, _ := json.Marshal(v)
		_, _ = os.Stdout.Write(append(line, '\n'))
	}
	type object = map[string]any
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := func(result any) { put(object{"jsonrpc": "2.0", "id": m.ID, "result": result}) }
		fail := func(code int) {
			put(object{"jsonrpc": "2.0", "id": m.ID, "error": object{"code": code, "message": "no " + evilText, "data": object{"x": evilText}}})
		}
		update := func(u object) {
			put(object{"jsonrpc": "2.0", "method": "session/update", "params": object{"sessionId": "s" + evilText, "update": u}})
		}
		if where == m.Method {
			fail(-32000)
			continue
		}
		if where == m.Method+" other" {
			fail(-32603)
			continue
		}
		switch m.Method {
		case "initialize":
			answer(object{"protocolVersion": 1, "agentCapabilities": object{}, "authMethods": []object{{"id": evilText, "name": evilText, "description": evilText}}, "agentInfo": object{"name": evilText, "version": evilText}})
		case "session/new":
			answer(object{"sessionId": "s" + evilText})
		case "session/prompt":
			fmt.Fprintln(os.Stderr, "stderr "+evilText)
			update(object{"sessionUpdate": "tool_call", "toolCallId": "t" + evilText, "title": evilText, "kind": "other", "name": evilText, "status": "completed", "rawInput": object{"command": evilText}, "rawOutput": evilText})
			update(object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": "text " + evilText}})
			answer(object{"stopReason": "end_turn" + evilText})
		default:
			answer(object{})
		}
	}
}

// What an agent says, also in its errors, does not steer the terminal of the person who
// runs the command.
func TestHostileAgentOnTheTerminal(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("there is no script, which makes a terminal")
	}
	bin := troupe(t)
	for _, where := range []string{"", "initialize", "session/new", "session/prompt", "initialize other", "session/new other", "session/prompt other"} {
		for _, command := range []string{"run", "batch"} {
			t.Run(command+" "+where, func(t *testing.T) {
				dir := t.TempDir()
				write(t, filepath.Join(dir, "tasks.jsonl"), `{"id":"t","prompt":"x"}`+"\n")
				args := []string{command, "--agent", "acp:" + os.Args[0]}
				if command == "run" {
					args = append(args, "x")
				} else {
					args = append(args, "tasks.jsonl", "--retries", "0")
				}
				c := exec.Command("script", "-qec", strings.Join(append([]string{bin}, quoteAll(args)...), " "), "/dev/null") // a terminal
				c.Dir = dir
				c.Env = append(os.Environ(), helperEnv+"=acp", "REDTEAM2_WHERE="+where, "NO_COLOR=1", "TERM=dumb", "HOME="+dir)
				done := time.AfterFunc(3*time.Minute, func() { _ = c.Process.Kill() })
				out, err := c.CombinedOutput()
				done.Stop()
				text := string(out)
				t.Logf("%v %.300q", err, text)
				if s := steers(text); s != "" {
					t.Errorf("it reaches the terminal: %s", s)
				}
			})
		}
	}
}

func quoteAll(all []string) (out []string) {
	for _, s := range all {
		out = append(out, "'"+s+"'")
	}
	return out
}

package jobs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const hookSecret = "the-key-of-the-webhook-0123456789"

func init() { helpers["env"] = envAgent }

// envAgent is an agent of the Agent Client Protocol that says what its environment has.
func envAgent() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{}}}`+"\n", m.ID)
		case "session/new":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}`+"\n", m.ID)
		case "session/prompt":
			said, _ := json.Marshal("secret: " + os.Getenv("TROUPE_WEBHOOK_SECRET"))
			fmt.Printf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}}`+"\n", said)
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`+"\n", m.ID)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
		}
	}
}

// The key signs what a person decides on. An agent that has it can tell the receiver of the
// webhook, with a signature that is right, that the id of its dangerous call is a harmless
// one. Neither agents nor verifiers and setups, which run what agents have written, may
// have it.
func TestWebhookSecretStaysWithTheHost(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tasks.jsonl"), `{"id":"t","prompt":"x"}`+"\n")
	c := exec.Command(troupe(t), "batch", "tasks.jsonl", "--agent", "acp:"+os.Args[0], "--approvals", "--webhook", server.URL,
		"--verify", `echo "verifier: $TROUPE_WEBHOOK_SECRET"; exit 1`, "--retries", "0")
	c.Dir = dir
	c.Env = append(os.Environ(), helperEnv+"=env", "TROUPE_WEBHOOK_SECRET="+hookSecret, "HOME="+dir)
	timer := time.AfterFunc(3*time.Minute, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	out, err := c.CombinedOutput()
	t.Logf("%v %.200q", err, out)
	results := readAll(t, filepath.Join(dir, "tasks.out", "results.jsonl"))
	require.Contains(t, results, "secret: ")
	if strings.Contains(results, "secret: "+hookSecret) {
		t.Errorf("the agent has the key of the webhook")
	}
	if strings.Contains(results, "verifier: "+hookSecret) {
		t.Errorf("the verifier has the key of the webhook")
	}
}

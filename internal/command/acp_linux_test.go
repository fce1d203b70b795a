package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// testACP: the process speaks only the protocol on stdout, and ends within bounded time
// with everything that the agent started, at the end of stdin and at SIGTERM.
func (b binaries) testACP(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*exec.Cmd, func() error) error{
		"the end of stdin": func(_ *exec.Cmd, closeStdin func() error) error { return closeStdin() },
		"SIGTERM":          func(cmd *exec.Cmd, _ func() error) error { return cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token := fmt.Sprintf("troupe-acp-%d-%s", os.Getpid(), strings.ReplaceAll(name, " ", "-"))
			file := filepath.Join(t.TempDir(), "script.yaml")
			yaml := "default: [spawn: {token: " + token + "}, text: hello, delay: 1h]"
			require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
			cmd := exec.CommandContext(t.Context(), b.troupe, "acp", "--agent", "claude", "--path", b.agent, "--env", "TROUPE_SCRIPT="+file, "--log-level", "debug")
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			var notes screen
			cmd.Stderr = &notes
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			next := func(holds string) string {
				for lines.Scan() {
					require.True(t, json.Valid(lines.Bytes()), "%s", lines.Text())
					if strings.Contains(lines.Text(), holds) {
						return lines.Text()
					}
				}
				t.Fatalf("no %s; stderr: %s", holds, notes.String())
				return ""
			}
			send := func(text string) {
				_, err := in.Write([]byte(text + "\n"))
				require.NoError(t, err)
			}
			send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
			assert.Contains(t, next(`"id":1`), `"title":"Troupe (claude)"`)
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, t.TempDir()))
			var opened struct{ Result struct{ SessionID string } }
			require.NoError(t, json.Unmarshal([]byte(next(`"id":2`)), &opened))
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}}`, opened.Result.SessionID))
			next("hello")
			late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Signal(unix.SIGQUIT) }) // a busy machine needs more than the 10 s that the closing may take
			defer late.Stop()
			require.NoError(t, end(cmd, in.Close))
			for lines.Scan() {
				assert.True(t, json.Valid(lines.Bytes()), "%s", lines.Text())
			}
			require.NoError(t, cmd.Wait(), "exit 0; stderr: %s", notes.String())
			leavesNothing(t, token)
		})
	}
}

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// doctorWorld is a machine with claude on its PATH, which says that it is a release.
func doctorWorld(t *testing.T, release string, env map[string]string) *world {
	t.Helper()
	dir := t.TempDir()
	program(t, filepath.Join(dir, "claude"), "echo '"+release+"'")
	all := map[string]string{"PATH": dir, "HOME": t.TempDir()}
	maps.Copy(all, env)
	w := newWorld()
	w.getenv = func(name string) string { return all[name] }
	return w
}

// program writes a shell script by another process: a child of this one that starts meanwhile would have
// the file open for writing, and the system then refuses to execute it.
func program(t *testing.T, path, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it runs a POSIX shell")
	}
	cmd := exec.Command("sh", "-c", `cat >"$1" && chmod 700 "$1"`, "sh", path)
	cmd.Stdin = strings.NewReader("#!/bin/sh\n" + script + "\n")
	require.NoError(t, cmd.Run())
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		release string
		env     map[string]string
		code    int
		want    []finding
	}{
		"a tested release and a key": {"2.1.329 (Claude Code)", map[string]string{"ANTHROPIC_API_KEY": "very-secret"}, exitOK, []finding{
			{"agents", fine, "Claude Code 2.1.329 at *, tested", ""},
			{"login", fine, "Claude Code: by the variable ANTHROPIC_API_KEY", ""},
			{"model", fine, "keys in the environment: ANTHROPIC_API_KEY", ""},
		}},
		"another release and no key": {"3.0.0", nil, exitOK, []finding{
			{"agents", notable, "Claude Code 3.0.0 at *, which was not tested", "tested: 2.1.329, 2.1.197"},
			{"git", notable, "git is not on PATH", "install it: worktrees and diffs of tasks need it"},
		}},
		"a model without its key": {"2.1.329", map[string]string{"TROUPE_MODEL": "openai/gpt-5"}, exitResult, []finding{
			{"model", problem, "TROUPE_MODEL is openai/gpt-5, and its key is missing", "set OPENAI_API_KEY"},
		}},
		"a model without an endpoint": {"2.1.329", map[string]string{"TROUPE_MODEL": "gpt"}, exitResult, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := doctorWorld(t, c.release, c.env)
			require.Equal(t, c.code, w.run("doctor", "--json"), w.err.String())
			assert.NotContains(t, w.out.String(), "secret")
			var found []finding
			require.NoError(t, json.Unmarshal([]byte(w.out.String()), &found))
			for i, f := range found {
				if dir := w.getenv("PATH"); f.Check == "agents" {
					found[i].Text = strings.ReplaceAll(f.Text, filepath.Join(dir, "claude"), "*")
				}
			}
			for _, want := range c.want {
				assert.Contains(t, found, want)
			}
			w = doctorWorld(t, c.release, c.env)
			require.Equal(t, c.code, w.run("doctor"))
			assert.Regexp(t, `(?m)^(ok|note|PROBLEM) +agents +Claude Code `, w.out.String())
			assert.NotContains(t, w.out.String(), "secret")
		})
	}
}

func TestDoctorFindsAnAgentThatFails(t *testing.T) {
	t.Parallel()
	w := doctorWorld(t, "", nil)
	program(t, filepath.Join(w.getenv("PATH"), "claude"), "exit 3")
	require.Equal(t, exitResult, w.run("doctor"))
	assert.Regexp(t, `PROBLEM +agents +Claude Code: \S+claude --version: exit status 3\n +→ install it anew`, w.out.String())
}

func TestClaudeLogin(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_000_000)
	for text, want := range map[string]finding{
		`{"claudeAiOauth":{"accessToken":"secret","refreshToken":"secret","expiresAt":5,"subscriptionType":"max"}}`: ok("Claude Code: logged in, max"),
		`{"claudeAiOauth":{"accessToken":"secret","expiresAt":2000000}}`:                                            ok("Claude Code: logged in, with an account"),
		`{"claudeAiOauth":{"accessToken":"secret","expiresAt":5}}`:                                                  wrong("Claude Code: logged in, with an account, until "+time.UnixMilli(5).Format(time.DateTime), "run claude and /login, or set ANTHROPIC_API_KEY"),
		`{"other":1}`: remark("Claude Code: the login in DIR is not known to this release", ""),
		`secret`:      remark("Claude Code: the login in DIR is not known to this release", ""),
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".credentials.json"), []byte(text), 0o600))
		got := claudeLogin(func(name string) string { return map[string]string{"CLAUDE_CONFIG_DIR": dir}[name] }, now)
		got.Text = strings.ReplaceAll(got.Text, dir, "DIR")
		assert.Equal(t, want, got, text)
	}
}

func TestLocalModels(t *testing.T) {
	t.Parallel()
	server := func(status int, body string) localServer {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" {
				status = http.StatusNotFound
			}
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return localServer{"Ollama", s.URL}
	}
	good := server(200, `{"data":[{"id":"qwen3"},{"id":"llama"}]}`)
	assert.Equal(t, []finding{ok("Ollama at %s: qwen3, llama; troupe run --model '%s/v1#qwen3'", good.url, good.url)},
		askServers(t.Context(), []localServer{server(404, ``), good, server(200, `a page`), {"nothing", "http://127.0.0.1:1"}}))
	empty := server(200, `{"data":[]}`)
	assert.Equal(t, remark("Ollama at "+empty.url+" has no model", ""), askServer(t.Context(), empty))
	assert.Equal(t, []finding{ok("no server of local models answers at its usual port")}, askServers(t.Context(), []localServer{server(200, `{}`)}))
}

func TestLimitsOfControlGroups(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	self := filepath.Join(root, "self")
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	write("self", "12:pids:/old\n0::/a/b\n")
	write("a/memory.max", "1000\n")
	write("a/b/memory.max", "max\n")
	write("a/b/pids.max", "50\n")
	write("a/pids.max", "70\n")
	write("pids.max", "60\n")
	assert.Equal(t, []groupLimit{{"memory.max", 1000}, {"pids.max", 50}}, groupLimits(self, root))
	write("self", "12:pids:/old\n")
	assert.Empty(t, groupLimits(self, root))
	assert.Empty(t, groupLimits(filepath.Join(root, "none"), root))
}

// The checks keep their order, and one that stands still ends with its context.
func TestChecksRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	second := make(chan struct{})
	found := examine(t.Context(), []check{
		{"one", func(context.Context, *examined) []finding { <-second; return []finding{ok("1")} }},
		{"two", func(context.Context, *examined) []finding {
			close(second)
			return []finding{wrong("2", "do it"), ok("3")}
		}},
	}, nil)
	assert.Equal(t, "ok       one           1\nPROBLEM  two           2\n                       → do it\nok       two           3\n", doctorText(found))
}

package fleet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// agentEnv makes the test's program play an agent, and slowEnv one that works for an hour.
const (
	agentEnv = "TROUPE_FLEET_TEST_AGENT"
	slowEnv  = "TROUPE_FLEET_TEST_SLOW"
	stays    = "stays" // of slowEnv: the end of its stdin does not end it
)

func TestMain(m *testing.M) {
	if os.Getenv(agentEnv) != "" {
		agentMain()
		return
	}
	if os.Getenv(hostEnv) != "" {
		hostMain()
		return
	}
	if os.Getenv(containedEnv) != "" {
		containedMain()
		return
	}
	goleak.VerifyTestMain(m)
}

// hostEnv makes the test's program run a job in the directory that it names, with
// hostTasks tasks.
const (
	hostEnv   = "TROUPE_FLEET_TEST_HOST"
	hostTasks = "TROUPE_FLEET_TEST_TASKS"
)

// agentMain is an agent that works for a moment and leaves a process behind that no
// signal to its group reaches.
func agentMain() {
	work := 20 * time.Millisecond
	if os.Getenv(slowEnv) != "" {
		work = time.Hour
	}
	wrong := scripted.Misbehaviour{IgnoreEOF: os.Getenv(slowEnv) == stays}
	steps := scripted.Steps{&scripted.Spawn{}, scripted.Delay(work), scripted.Text("done: ${prompt}")}
	agent.Main(scripted.New(
		scripted.WithScript(&scripted.Script{Transcript: true, Misbehave: wrong, Default: steps, Turns: []scripted.Turn{{When: "t", Steps: steps}}}),
		scripted.WithSpawn(func(scripted.Child) error {
			left := exec.Command("sleep", "300")
			left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			return left.Start()
		})))
}

func hostMain() {
	dir := os.Getenv(hostEnv)
	n, _ := strconv.Atoi(os.Getenv(hostTasks))
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	_ = os.Unsetenv(hostEnv) // the agents are not hosts
	_, missing := os.Stat(filepath.Join(dir, "out", journal.Name))
	job := fast(fleet.Job{
		Tasks: tasks(n), Concurrency: 6, Out: filepath.Join(dir, "out"), Resume: missing == nil, MaxStarts: 1000,
		FS: dying(journal.Dir(filepath.Join(dir, "out"))),
		Options: &sdk.Options{
			Backend: sdk.Claude(sdk.ClaudeConfig{Path: exe}), Policy: &policy.Rules{Default: policy.Deny},
			Env: map[string]string{agentEnv: "1", "HOME": filepath.Join(dir, "home"), "ANTHROPIC_API_KEY": "k", "TROUPE_TEST_DIR": dir},
		},
	})
	failed := 0
	for r, err := range fleet.Run(context.Background(), job) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		if !r.OK() {
			fmt.Fprintln(os.Stderr, r.ID, r.Status, r.Error)
			failed++
		}
	}
	os.Exit(min(failed, 1))
}

// A host that is killed at any instant goes on where it was: each task has one result, and
// nothing of an earlier host lives. Every other host kills itself inside a write, or right
// after it.
func TestAHostIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	count, kills := 36, 6
	if os.Getenv("TROUPE_FULL") != "" {
		count, kills = 300, 50
	}
	dir := t.TempDir()
	host := func(env ...string) *exec.Cmd {
		c := exec.Command(os.Args[0], "-test.run=^$")
		c.Env = append(append(os.Environ(), hostEnv+"="+dir, hostTasks+"="+strconv.Itoa(count)), env...)
		c.Stderr = &bytes.Buffer{}
		return c
	}
	rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	died, torn := map[string]int{}, 0
	for n := range kills {
		instant := "any"
		c := host()
		if n%2 == 0 {
			instant = []string{duringWrite, beforeSync, beforeRecord}[n/2%3]
			c = host(dyingEnv + "=" + instant + " " + strconv.Itoa(1+rnd.IntN(8)))
		}
		require.NoError(t, c.Start())
		if instant == "any" {
			time.Sleep(time.Duration(rnd.Int64N(int64(300 * time.Millisecond)))) // the instant is the test
			require.NoError(t, c.Process.Kill())
		}
		err := c.Wait()
		if err != nil && !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the host ended by itself: %v: %s", err, c.Stderr)
		}
		if err != nil {
			died[instant]++
		}
		if text, err := os.ReadFile(filepath.Join(dir, "out", journal.Name)); err == nil && !bytes.HasSuffix(text, []byte("\n")) {
			torn++
		}
	}
	last := host()
	require.NoError(t, last.Run(), "%s", last.Stderr)

	out := filepath.Join(dir, "out")
	seen := map[string]int{}
	for _, line := range lines(read(t, out, "results.jsonl")) {
		var r fleet.TaskResult
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		seen[r.ID]++
		assert.Equal(t, fleet.Accepted, r.Status)
		assert.Contains(t, r.Text, "done: ")
	}
	assert.Len(t, seen, count)
	results, hosts := map[string]int{}, 0
	for _, line := range lines(read(t, out, journal.Name)) {
		var rec journal.Record
		require.NoError(t, json.Unmarshal([]byte(line), &rec))
		switch rec.Kind {
		case "result":
			results[rec.Task]++
		case "host":
			hosts++
		}
	}
	assert.Len(t, results, count)
	for id, n := range results {
		assert.Equal(t, 1, n, "results of %s in the journal", id)
		assert.Equal(t, 1, seen[id])
	}
	inside := died[duringWrite] + died[beforeSync] + died[beforeRecord]
	t.Logf("%d tasks, %d kills, %d of them after the journal had begun; %d inside a write %v, %d journals with a torn end",
		count, inside+died["any"], hosts-1, inside, died, torn)
	assert.GreaterOrEqual(t, inside, kills/3, "hosts that died inside a write")
	assert.Empty(t, alive(t, dir), "processes that are left")
}

// Tasks with a key have configuration directories of their own, below Out. A login that only
// one directory can have is shared, and one event says so.
func TestTasksHaveTheirOwnDirectories(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		env     map[string]string
		private int
		shared  int // events
	}{
		"a key":       {map[string]string{"ANTHROPIC_API_KEY": "k"}, 3, 0},
		"a login":     {map[string]string{"ANTHROPIC_API_KEY": ""}, 0, 1},
		"a directory": {map[string]string{"ANTHROPIC_API_KEY": "k", "CLAUDE_CONFIG_DIR": t.TempDir()}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, out := t.TempDir(), t.TempDir()
			env := map[string]string{agentEnv: "1", "HOME": home, "ANTHROPIC_AUTH_TOKEN": "", "CLAUDE_CODE_OAUTH_TOKEN": ""}
			maps.Copy(env, c.env)
			var shared atomic.Int64
			job := fleet.Job{Tasks: tasks(3), Out: out, Options: &sdk.Options{
				Backend: sdk.Claude(sdk.ClaudeConfig{Path: exe}), Env: env,
				OnEvent: func(r sdk.EventRecord) {
					if e, ok := r.Event.(*session.Isolated); ok && e.Shared != "" {
						shared.Add(1)
					}
				},
			}}
			results, err := collect(t, job)
			require.NoError(t, err)
			for id, r := range results {
				require.Equal(t, fleet.Accepted, r.Status, "%s: %s", id, r.Error)
			}
			transcripts := func(pattern ...string) int {
				found, err := filepath.Glob(filepath.Join(pattern...))
				require.NoError(t, err)
				return len(found)
			}
			assert.Equal(t, c.private, transcripts(out, "state", "*", "*", "projects", "*", "*.jsonl")+transcripts(out, "state", "*", "projects", "*", "*.jsonl"))
			assert.Eventually(t, func() bool { return shared.Load() >= int64(c.shared) }, time.Minute, time.Millisecond) // events come by themselves
			assert.EqualValues(t, c.shared, shared.Load())
			if c.env["CLAUDE_CONFIG_DIR"] == "" {
				assert.Equal(t, 3-c.private, transcripts(home, ".claude", "projects", "*", "*.jsonl"))
			}
		})
	}
}

// alive finds the processes that have the test's directory in their environment.
func alive(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	all, err := filepath.Glob("/proc/[0-9]*") // a name below would list each directory
	require.NoError(t, err)
	for _, process := range all {
		env, err := os.ReadFile(filepath.Join(process, "environ"))
		if err == nil && bytes.Contains(env, []byte("TROUPE_TEST_DIR="+dir)) {
			command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
			found = append(found, process+" "+string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
		}
	}
	return found
}

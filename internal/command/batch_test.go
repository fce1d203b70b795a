package command

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/estimate"
)

const answering = `default: [{text: "You said: ${prompt}"}]`

// taskFile writes a file of tasks.
func taskFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func resultsIn(t *testing.T, dir string) map[string]fleet.TaskResult {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "results.jsonl"))
	require.NoError(t, err)
	all := map[string]fleet.TaskResult{}
	for line := range strings.Lines(string(text)) {
		var r fleet.TaskResult
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		all[r.ID] = r
	}
	return all
}

func TestBatchReadsTasks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, text string
		args       []string
		want       map[string]string
	}{
		"JSONL": {"tasks.jsonl", "{\"id\":\"a\",\"prompt\":\"one\"}\n\n{\"prompt\":\"two\"}\n", nil, map[string]string{"a": "one", "0002": "two"}},
		"CSV":   {"tasks.csv", "\uFEFFid,prompt,tags\na,\"one, and more\",x y\nb,two,\n", nil, map[string]string{"a": "one, and more", "b": "two"}},
		"CSV of other types": {"tasks.csv", "id,prompt,priority,clean,after,turns,verify,timeout,notBefore\n" +
			"a,one,2,TRUE,,,\"{\"\"command\"\":\"\"true\"\"}\",5m,2026-01-01T00:00:00Z\nb,two,,,a,[],,,\n", nil, map[string]string{"a": "one", "b": "two"}},
		"YAML":     {"tasks.yaml", "tasks:\n- {id: a, prompt: one}\n- prompt: two\n", nil, map[string]string{"a": "one", "0002": "two"}},
		"JSON":     {"tasks.json", `[{"id":"a","prompt":"one"}]`, nil, map[string]string{"a": "one"}},
		"template": {"tasks.csv", "id,issue\na,7\n", []string{"--template", "Fix #{{.issue}}"}, map[string]string{"a": "Fix #7"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, file := newWorld(), taskFile(t, c.file, c.text)
			code := w.run(append([]string{"batch", "-a", script(t, answering), file}, c.args...)...)
			require.Equal(t, exitOK, code, w.err)
			results := resultsIn(t, outOf(file))
			assert.Len(t, results, len(c.want))
			for id, prompt := range c.want {
				assert.Equal(t, "You said: "+prompt, results[id].Text)
			}
			assert.Contains(t, w.out.String(), " accepted; $")
			assert.FileExists(t, filepath.Join(outOf(file), "report.html"))
		})
	}
}

func TestBatchReadsTasksFromStdin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		args []string
	}{
		"JSONL": {"{\"id\":\"a\",\"prompt\":\"one\"}\n{\"id\":\"b\",\"prompt\":\"two\"}", nil},
		"CSV":   {"id,prompt\na,one\nb,two\n", []string{"--format", "csv"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, out := newWorld(), t.TempDir()
			w.stdin = strings.NewReader(c.text)
			require.Equal(t, exitOK, w.run(append([]string{"batch", "-", "-O", out, "-a", script(t, answering)}, c.args...)...), w.err)
			results := resultsIn(t, out)
			require.Len(t, results, 2)
			assert.Equal(t, "You said: one", results["a"].Text)
			assert.Equal(t, "You said: two", results["b"].Text)
		})
	}
	w := newWorld()
	w.stdin = strings.NewReader("{\"prompt\":\"x\"}\n{")
	assert.Equal(t, exitUsage, w.run("batch", "-", "-O", t.TempDir(), "-a", "scripted"))
	assert.Contains(t, w.err.String(), "stdin:2:2: is not JSON: the text ends too early")
}

func TestBatchMistakes(t *testing.T) {
	t.Parallel()
	good := taskFile(t, "tasks.jsonl", `{"id":"a","prompt":"one"}`)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no file":        {[]string{"batch"}, "takes one file"},
		"missing":        {[]string{"batch", "/no/such/file"}, "no such file"},
		"empty":          {[]string{"batch", taskFile(t, "t.jsonl", "\n")}, "has no tasks"},
		"key":            {[]string{"batch", taskFile(t, "t.jsonl", "{\"prompt\":\"x\"}\n{\"promt\":\"x\"}\n")}, "t.jsonl:2:2: promt is not known; did you mean prompt?"},
		"cell":           {[]string{"batch", taskFile(t, "t.csv", "prompt,priority\nx,1\ny,high\n")}, `t.csv:3:3: priority is "high", and has to be what JSON has there`},
		"column":         {[]string{"batch", taskFile(t, "t.csv", "prompt,prio\nx,1\n")}, "t.csv:1:8: prio is not known"},
		"twice":          {[]string{"batch", taskFile(t, "t.jsonl", "{\"id\":\"a\",\"prompt\":\"x\"}\n{\"id\":\"a\",\"prompt\":\"x\"}\n")}, "is that of task 1"},
		"no field":       {[]string{"batch", good, "--template", "{{.issue}} {{.prompt}}"}, "the row has id, prompt"},
		"no list":        {[]string{"batch", taskFile(t, "t.yaml", "a: 1\n")}, "is an object without the key tasks"},
		"rounds":         {[]string{"batch", good, "--verify-rounds", "2"}, "need --verify"},
		"setup":          {[]string{"batch", good, "--setup", "make"}, "--workspace"},
		"lockfiles":      {[]string{"batch", taskFile(t, "t.jsonl", `{"prompt":"x","workspace":{"kind":"copy","setup":"true","lockfiles":["go.sum"]}}`)}, "Lockfiles: was removed"},
		"no lockfiles":   {[]string{"batch", good, "--lockfiles", "go.sum"}, "--lockfiles: it was removed"},
		"setups":         {[]string{"batch", good, "--setups", "0"}, `--setups: "0" is not a number from 1`},
		"fail-on":        {[]string{"batch", good, "--fail-on", "200%"}, "--fail-on"},
		"budget":         {[]string{"batch", good, "--budget-usd", "0"}, "--budget-usd"},
		"concurrency":    {[]string{"batch", good, "-j", "0"}, `--concurrency: "0" is not a number from 1, or auto`},
		"memory":         {[]string{"batch", good, "--max-memory", "8X"}, `--max-memory: "8X" is not a size; write 512M or 8G`},
		"disk":           {[]string{"batch", good, "--min-free-disk", "0"}, `--min-free-disk: "0" is not a size`},
		"starts":         {[]string{"batch", good, "--starts-per-second", "-1"}, `--starts-per-second: "-1" is not a number from 0`},
		"nothing before": {[]string{"batch", good, "--resume"}, "no journal"},
		"options":        {[]string{"batch", good, "--max-turns", "x"}, "--max-turns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			assert.Equal(t, exitUsage, w.run(append(c.args, "-a", "scripted")...))
			assert.Contains(t, w.err.String(), c.want)
		})
	}
}

// Where no task could work is found before anything starts.
func TestBatchInADirectoryThatIsNotCommitted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("it runs a POSIX shell")
	}
	dir := t.TempDir()
	out, err := exec.Command("sh", "-ec", "cd "+dir+"; git init -q; git -c user.name=t -c user.email=t@example.com commit -q --allow-empty -m one; mkdir new").CombinedOutput()
	require.NoError(t, err, "%s", out)
	good := taskFile(t, "tasks.jsonl", `{"prompt":"one"}`)
	for from, want := range map[string]string{
		filepath.Join(dir, "new"): "has no directory new", filepath.Join(dir, "none"): "none", t.TempDir(): "is in no git repository",
	} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run("batch", good, "-a", "scripted", "-w", "worktree", "-C", from), from)
		assert.Contains(t, w.err.String(), want)
	}
}

func TestBatchDryRun(t *testing.T) {
	t.Parallel()
	w, file := newWorld(), taskFile(t, "tasks.jsonl", "{\"id\":\"a\",\"prompt\":\"one\"}\n{\"id\":\"b\",\"prompt\":\"two\\nlines\",\"after\":[\"a\"]}\n")
	require.Equal(t, exitOK, w.run("batch", "-a", "scripted", "-n", "-q", file), w.err)
	here, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, "2 tasks for scripted, 4 at a time; results go to "+outOf(file)+"\n  a                    one\n                       in "+here+"; other calls are denied\n  b                    two lines, after a\n", w.out.String())
	assert.NoDirExists(t, outOf(file))
}

// A task that was not accepted is exit code 1, and its details are shown at once.
func TestBatchFailures(t *testing.T) {
	t.Parallel()
	w, file := newWorld(), taskFile(t, "tasks.jsonl", "{\"id\":\"a\",\"prompt\":\"one\"}\n{\"id\":\"b\",\"prompt\":\"two\"}\n")
	code := w.run("batch", "-a", script(t, answering), file, "-q", "--verify", "echo not good; test $TROUPE_TASK = a", "--events", file+".events")
	assert.Equal(t, exitResult, code)
	assert.Contains(t, w.out.String(), "1 of 2 tasks accepted, 1 rejected; $")
	assert.Contains(t, w.err.String(), "b rejected: the verification rejected it")
	events, err := os.ReadFile(file + ".events")
	require.NoError(t, err)
	assert.Contains(t, string(events), `"kind":"verified"`)

	w = newWorld()
	assert.Equal(t, exitUsage, w.run("batch", "-a", script(t, answering), file, "-q"))
	assert.Contains(t, w.err.String(), "add --resume")
	w = newWorld()
	assert.Equal(t, exitResult, w.run("batch", "-a", script(t, answering), file, "-q", "--resume"), "what is over is not run again")
}

// A failure that repeats itself is permanent, however many retries there are.
func TestBatchEqualFailures(t *testing.T) {
	t.Parallel()
	w, file := newWorld(), taskFile(t, "tasks.jsonl", `{"id":"a","prompt":"one"}`)
	overloaded := script(t, `default: [{result: {is_error: true, api_error_status: 529, text: overloaded}}]`)
	assert.Equal(t, exitResult, w.run("batch", "-a", overloaded, file, "--retries", "50", "--equal-failures", "2"), w.err)
	r := resultsIn(t, outOf(file))["a"]
	assert.Equal(t, fleet.Overloaded, r.Status)
	assert.Len(t, r.Attempts, 2)

	for args, want := range map[string]int{"": defaultEqualFailures, "--equal-failures 3": 3, "--equal-failures 0": 0} {
		s, err := parseBatch(t, append(strings.Fields(args), file))
		require.NoError(t, err)
		assert.Equal(t, want, s.batch.job.EqualFailures, args)
	}
}

// A limit stops the job; without it the rest runs.
func TestBatchResume(t *testing.T) {
	t.Parallel()
	file := taskFile(t, "tasks.jsonl", strings.Repeat("{\"prompt\":\"x\"}\n", 6))
	failing := script(t, `default: [{result: {subtype: error_during_execution}}]`)
	w := newWorld()
	assert.Equal(t, exitResult, w.run("batch", "-a", failing, file, "-j", "1", "--fail-on", "50%"))
	assert.Contains(t, w.out.String(), "0 of 6 tasks accepted, 3 failed, 3 left (--resume runs them)")
	w = newWorld()
	assert.Equal(t, exitResult, w.run("batch", "-a", script(t, answering), file, "--resume"))
	assert.Contains(t, w.out.String(), "3 of 6 tasks accepted, 3 failed; $")
}

func TestBatchSignals(t *testing.T) {
	t.Parallel()
	file := taskFile(t, "tasks.jsonl", strings.Repeat("{\"prompt\":\"x\"}\n", 4))
	w := newWorld()
	w.stderrTTY = true
	events := file + ".events"
	code := w.start("batch", "-a", script(t, slowTurn), file, "-j", "2", "--events", events)
	w.err.await(t, "0001")
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(events)
		return err == nil && strings.Count(string(text), `"started"`) == 2
	}, time.Minute, 5*time.Millisecond)
	for _, said := range []string{"no others start", "interrupting"} {
		w.signal <- os.Interrupt
		w.err.await(t, said)
	}
	assert.Equal(t, 130, <-code)
	assert.Contains(t, w.out.String(), "0 of 4 tasks accepted, 4 left")
	assert.Contains(t, w.err.String(), "2 running")
}

func TestBatchWithoutATerminalOrWithOne(t *testing.T) {
	t.Parallel()
	for name, terminal := range map[string]bool{"lines": false, "bar": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, file := newWorld(), taskFile(t, "tasks.jsonl", strings.Repeat("{\"prompt\":\"x\"}\n", 8))
			w.stderrTTY = terminal
			require.Equal(t, exitOK, w.run("batch", "-a", script(t, answering), file, "--allowed-tools", "Read"), w.err)
			assert.Equal(t, !terminal, strings.Contains(w.err.String(), "[8/8]"), w.err)
			assert.Equal(t, terminal, strings.Contains(w.err.String(), "\x1b["))
		})
	}
}

func TestBarText(t *testing.T) {
	t.Parallel()
	now := time.Now()
	minutesAgo := now.Add(-2 * time.Minute)
	for name, c := range map[string]struct {
		p    fleet.Progress
		want string
	}{
		"nothing is over": {fleet.Progress{Total: 8, Queued: 8, Started: minutesAgo}, " 0/8, 0 running, 8 queued, $0.00"},
		"some tasks are":  {fleet.Progress{Total: 8, Finished: 4, Queued: 4, Started: minutesAgo}, " 4/8, 4 failed, 0 running, 4 queued, $0.00, 2.0/min, 2m0s left"},
		"after a resume": {
			fleet.Progress{Total: 1000, Finished: 904, Earlier: 900, Queued: 96, ByStatus: map[fleet.Status]int{fleet.Accepted: 904}, Started: minutesAgo},
			" 904/1000, 0 running, 96 queued, $0.00, 2.0/min, 48m0s left",
		},
		"a resume that has finished no task": {
			fleet.Progress{Total: 1000, Finished: 900, Earlier: 900, Queued: 100, ByStatus: map[fleet.Status]int{fleet.Accepted: 900}, Started: minutesAgo},
			" 900/1000, 0 running, 100 queued, $0.00",
		},
	} {
		assert.Equal(t, c.want, barText(c.p, now), name)
	}
}

// Samples cost what they cost, and are not lost.
func TestBatchEstimate(t *testing.T) {
	t.Parallel()
	file := taskFile(t, "tasks.jsonl", strings.Repeat("{\"prompt\":\"x\"}\n", 8))
	priced := script(t, `default: [{text: done}, {result: {cost: 0.5}}]`)
	w := newWorld()
	require.Equal(t, exitOK, w.run("batch", "-a", priced, file, "-q", "-n", "--estimate", "2"), w.err)
	assert.Contains(t, w.out.String(), "8 tasks for ", "the plan of --dry-run")
	assert.Contains(t, w.out.String(), "2 of 2 tasks accepted; $1.00\n")
	assert.Contains(t, w.out.String(), "all 8 tasks, estimated from 2 (2 accepted):\n  cost                 $4.00, between $4.00 and $4.00 (a task: $0.50 to $0.50)\n")
	assert.Contains(t, w.out.String(), "elapsed, 4 at a time")
	assert.Contains(t, w.out.String(), "with --resume and without --estimate runs the other tasks")

	w = newWorld()
	assert.Equal(t, exitUsage, w.run("batch", "-a", priced, file, "-q", "-n", "--estimate", "2"), "the journal is not overwritten")
	w = newWorld()
	require.Equal(t, exitOK, w.run("batch", "-a", priced, file, "-q", "--resume"), w.err)
	assert.Contains(t, w.out.String(), "8 of 8 tasks accepted; $4.00", "each task was paid once")
	assert.NotContains(t, w.out.String(), "estimated")
	assert.Len(t, resultsIn(t, outOf(file)), 8)
}

func TestEstimateText(t *testing.T) {
	t.Parallel()
	s := &settings{}
	s.batch.job.Out = "tasks.out"
	assert.Contains(t, s.estimateText(estimate.New(3, nil)), "nothing can be estimated")
	free := fleet.TaskResult{Status: fleet.Failed, Attempts: make([]fleet.Attempt, 1), Usage: fleet.Usage{Turns: 3, Tokens: fleet.Tokens{Input: 40_000}, Wall: fleet.Duration(time.Minute)}}
	text := s.estimateText(estimate.New(100, []fleet.TaskResult{free}))
	for _, want := range []string{
		"estimated from 1 (0 accepted)", "the agent reports no cost", "turns                300 (a task: 3 to 3)",
		"input tokens         4M (a task: 40k to 40k)", "time of the agents   1h40m0s", "elapsed, 4 at a time 25m0s\n", "one sample does not show",
	} {
		assert.Contains(t, text, want)
	}
	s.batch.job.Pace = &fleet.Pace{}
	assert.NotContains(t, s.estimateText(estimate.New(100, []fleet.TaskResult{free})), "elapsed", "nobody knows how many run at a time")
}

package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
)

// The command of the main module names the one that has NATS.
func TestNoMachines(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"worker", "--nats", "nats://h:4222"}, {"worker", "--listen", "127.0.0.1:0"}, {"jobs", "--nats", "nats://h:4222"},
		{"batch", "tasks.jsonl", "--nats", "nats://h:4222"}, {"batch", "--attach", "j"},
	} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run(append(args, map[string][]string{"worker": {"--dir", t.TempDir()}}[args[0]]...)...), "%v", args)
		assert.Contains(t, w.err.String(), "go -C troupe/contrib/nats install ./cmd/troupe", "%v", args)
	}
}

// A flag of troupe batch stays here, is refused, or goes to the workers: a new one has to be thought about.
func TestWhereFlagsOfASharedJobGo(t *testing.T) {
	t.Parallel()
	var travel []string
	page := batchPage()
	for _, f := range page.flags() {
		local, refused := slices.Contains(localFlags(), f.name), refusedFlags()[f.name] != ""
		assert.False(t, local && refused, f.name)
		if !local && !refused && f.name != "lockfiles" {
			travel = append(travel, f.name)
		}
	}
	slices.Sort(travel)
	assert.Equal(t, []string{
		"account", "add-dir", "agent-version", "allow-dangerously-skip-permissions", "allowed-tools", "append-system-prompt", "approvals", "budget-usd", "config", "cwd",
		"disallowed-tools", "env", "equal-failures", "fail-on", "max-park", "max-starts", "max-turns", "mcp-config", "model", "move", "on-accept",
		"path", "patience", "permission-mode", "retries", "settings", "setup", "setups", "shared-mcp-dir", "system-prompt", "timeout",
		"tools", "verify", "verify-prompt", "verify-rounds", "workspace", "yes",
	}, travel)
}

// submitted is the specification that the arguments of troupe batch make.
func submitted(t *testing.T, tasks string, args ...string) (spec *specification, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tasks.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(tasks), 0o600))
	args = append(args, "--nats", "nats://h:4222", file)
	_, wrong := commandLine(t, batchPage(), args, func(s *settings) error {
		w := newWorld()
		w.args = append([]string{"batch"}, args...)
		spec, err = s.submission(t.Context(), w.process, t.TempDir())
		return err
	})
	if err == nil {
		err = wrong
	}
	return spec, err
}

// A worker reads the settings that the submitter has typed, files included, with its own keys.
func TestASpecificationTravels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	spec, err := submitted(t, `{"id":"a","prompt":"do","verify":{"command":"true"}}`,
		"--agent", "scripted:"+file("script.yaml", "default: [text: hi]\n"),
		"--config", file("options.yaml", "model: m\nmcpServers: {db: {type: http, url: https://db, headers: {Authorization: {$env: \"Bearer ${NO_SUCH_TROUPE_TOKEN}\"}}}}\n"),
		"--verify-prompt", "@"+file("again.txt", "Once more: {{.Output}}"), "--verify", "make test", "--allowed-tools", "Read", "--allowed-tools", "Bash(go *)",
		"-e", "COLOR=blue", "--retries", "4", "--settings", `{"a":1}`)
	require.NoError(t, err)
	assert.Equal(t, "default: [text: hi]\n", spec.Files["agent"])
	raw, err := json.Marshal(spec)
	require.NoError(t, err)
	assert.Contains(t, string(raw), "${NO_SUCH_TROUPE_TOKEN}")
	assert.NotContains(t, string(raw), "set-on-the-workers")
	there := t.TempDir()
	a := &app{}
	_, _, err = a.read(raw, there)
	require.ErrorContains(t, err, "NO_SUCH_TROUPE_TOKEN", "it is not set on this worker")
	spec.Files["config"] = "model: m\n"
	raw, err = json.Marshal(spec)
	require.NoError(t, err)
	s, _, err := a.read(raw, there)
	require.NoError(t, err)
	assert.Equal(t, "scripted:"+filepath.Join(there, "agent"), s.agent)
	assert.Equal(t, "m", s.opts.Model)
	assert.Equal(t, []string{"Read", "Bash(go *)"}, s.opts.AllowedTools)
	assert.Equal(t, map[string]string{"COLOR": "blue"}, s.opts.Env)
	assert.Equal(t, "Once more: {{.Output}}", s.batch.job.Verify.Prompt)
	assert.Equal(t, "make test", s.batch.job.Verify.Command)
	assert.Equal(t, 5, s.batch.job.Attempts)
	assert.JSONEq(t, `{"a":1}`, string(s.opts.Settings))
	assert.Equal(t, sdk.PresetPrompt(""), s.opts.SystemPrompt)
	require.Len(t, s.batch.job.Tasks, 1)
	assert.Equal(t, "true", s.batch.job.Tasks[0].Verify.Command)
	st, err := os.Stat(filepath.Join(there, "config"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), st.Mode().Perm())

	spec.Flags = append(spec.Flags, specFlag{"of-tomorrow", ""})
	raw, err = json.Marshal(spec)
	require.NoError(t, err)
	_, _, err = a.read(raw, there)
	require.ErrorIs(t, err, errNewer)
	_, _, err = a.read([]byte(`{"protocol": 2}`), there)
	require.ErrorIs(t, err, errNewer)
}

// Mistakes in a job on many machines are found before anything is sent.
func TestASpecificationIsRefused(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "options.yaml")
	require.NoError(t, os.WriteFile(config, []byte("mcpServers: {db: {type: http, url: https://db, headers: {X-Team: Bearer 0123456789}}}\n"), 0o600))
	const task = `{"prompt":"do"}`
	for name, c := range map[string]struct {
		tasks, says string
		args        []string
	}{
		"a key in a flag":     {task, "--env has a key or a token", []string{"-e", "MY_API_KEY=sk-0123456789"}},
		"a header":            {task, "--config has a key or a token", []string{"--config", config}},
		"a key in a task":     {`{"id":"x","prompt":"do","options":{"env":{"GH_TOKEN":"ghp_0123456789"}}}`, "task x has a key or a token", nil},
		"one that is quoted":  {`{"id":"x","prompt":"log in with sk-0123456789"}`, "--env has a key", []string{"-e", "MY_API_KEY=sk-0123456789"}},
		"a limit of machines": {task, "--concurrency is not for a job with --nats; say it to troupe worker", []string{"-j", "4"}},
		"no release":          {task, "--agent-version: \"latest\" is no release", []string{"--agent-version", "latest"}},
		"a part of troupe":    {task, "--agent-version is for claude and qoder, and not for scripted", []string{"--agent-version", "1.2.3"}},
		"a relative place":    {task, "--cwd: \"src\" is relative", []string{"--cwd", "src"}},
		"and of a task":       {`{"id":"x","prompt":"do","workspace":{"from":"src"}}`, "task x: workspace.from: \"src\" is relative", nil},
		"parts of a second":   {task, "--lease: 1.5s has a part of a second", []string{"--lease", "1500ms"}},
		"no such file":        {task, "--settings: open no-such-file", []string{"--settings", "no-such-file"}},
		"a wrong task":        {`{"prompt":"do","after":["b"]}`, `names the task "b"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := submitted(t, c.tasks, append(c.args, "--agent", "scripted")...)
			require.ErrorContains(t, err, c.says)
		})
	}
	_, err := submitted(t, task)
	require.ErrorContains(t, err, "say it with --agent", "no agent is guessed")
}

// The error of a refused key does not have the key.
func TestARefusedKeyIsNotShown(t *testing.T) {
	t.Parallel()
	_, err := submitted(t, `{"prompt":"do"}`, "-e", "MY_API_KEY=sk-0123456789", "--agent", "scripted")
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "0123456789")
}

// The arguments of troupe worker are checked together.
func TestWorkerArguments(t *testing.T) {
	t.Parallel()
	parse := func(args ...string) (*settings, error) {
		return commandLine(t, workerPage(), args, func(s *settings) error {
			w := newWorld()
			w.machines = fakeMachines{}
			return s.completeWorker(w.process)
		})
	}
	dir := filepath.Join(t.TempDir(), "d")
	for says, args := range map[string][]string{
		"--nats URL, or set TROUPE_NATS":     {"--dir", dir},
		"is not HOST:PORT":                   {"--dir", dir, "--listen", "4222"},
		"and --nats and --creds are for":     {"--dir", dir, "--listen", "127.0.0.1:0", "--nats", "nats://h"},
		"--tls-cert and --tls-key belong":    {"--dir", dir, "--nats", "nats://h", "--tls-cert", "x"},
		"needs --tls-ca, --tls-cert and":     {"--dir", dir, "--listen", "0.0.0.0:0", "--tls-cert", "x", "--tls-key", "y"},
		"neither XDG_STATE_HOME nor HOME":    {"--nats", "nats://h"},
		"takes no arguments":                 {"--dir", dir, "tasks.jsonl"},
		"--label: \"zone\" is not KEY=VALUE": {"--label", "zone"},
	} {
		_, err := parse(args...)
		require.ErrorContains(t, err, says)
	}
	s, err := parse("--dir", dir, "--listen", "127.0.0.1:0")
	require.NoError(t, err)
	assert.Empty(t, s.machines.servers.Token, "nobody else reaches it")
	for range 2 { // the token stays
		again, err := parse("--dir", dir, "--listen", "0.0.0.0:0")
		require.NoError(t, err)
		raw, err := os.ReadFile(filepath.Join(dir, "token"))
		require.NoError(t, err)
		assert.Equal(t, again.machines.servers.Token+"\n", string(raw))
		assert.GreaterOrEqual(t, len(raw), 26)
		st, err := os.Stat(filepath.Join(dir, "token"))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	}
}

type fakeMachines struct{ Machines }

// The parts of a limit add up to it, and no host needs to ask another one.
func TestPartsOfALimit(t *testing.T) {
	t.Parallel()
	job := []HostJob{{Job: "j", Account: "a"}}
	hosts := []HostEntry{{Host: "x", Places: 4, Jobs: job}, {Host: "y", Places: 8, Jobs: job}, {Host: "z", Jobs: job}, {Host: "other", Places: 9}, {Host: "ends", Places: 9, Jobs: job, Draining: true},
		{Host: "lacks", Places: 9, Jobs: []HostJob{{Job: "j", Account: "a", Why: "no agent"}}}}
	for limit := range 40 {
		sum := 0
		for _, h := range hosts {
			n := partOf(limit, hosts, h.Host, "a")
			assert.GreaterOrEqual(t, n, 0)
			sum += n
		}
		assert.Equal(t, limit, sum)
	}
	assert.Equal(t, 4, partOf(8, hosts, "y", "a"))
	assert.Zero(t, partOf(8, hosts, "other", "a"))
	assert.Zero(t, partOf(8, hosts, "y", "b"))

	w := &worker{name: "x"}
	now := time.Now()
	left := func(o *around) int { return w.leftOf(map[string]int{}, o, "a", now) }
	assert.Zero(t, left(nil), "the servers were not asked")
	assert.Greater(t, left(&around{}), 1000, "no limit is known")
	assert.Equal(t, 1, left(&around{now, hosts, []Cap{{Account: "a", Limit: 4}}}))
	later := now.Add(time.Minute)
	assert.Zero(t, left(&around{now, hosts, []Cap{{Account: "a", Until: later, By: "y"}}}), "spent")
	assert.Positive(t, left(&around{now, hosts, []Cap{{Account: "a", Until: later, By: "x"}}}), "its own job probes")
	assert.Positive(t, left(&around{now, hosts, []Cap{{Account: "a", Until: now.Add(-time.Minute), By: "y"}}}))
}

// A job asks for a release, and a machine that lacks it says so.
func TestReleases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		release, wanted string
		suits           bool
	}{
		{"2.1.329", "", true}, {"", "", true}, {"2.1.329", "2.1.329", true}, {"2.1.329", "2.1.32", false}, {"", "2.1.329", false},
		{"2.1.329", ">=2.1.329", true}, {"2.1.330", ">=2.1.329", true}, {"2.10.0", ">=2.9.9", true}, {"2.1.99", ">=2.1.100", false}, {"1.99.99", ">=2.0.0", false},
		{"2.1.329-beta.1", ">=2.1.329", true}, {"2.1.329-beta.1", "2.1.329", false}, {"", ">=0.0.0", false},
	} {
		assert.Equal(t, c.suits, suits(c.release, c.wanted), "%q for %q", c.release, c.wanted)
	}
	has, releases := []string{"claude"}, map[string]string{"claude": "2.1.100"}
	assert.Empty(t, lacks("claude", "", has, releases))
	assert.Empty(t, lacks("embedded", "", nil, nil))
	assert.Equal(t, "claude is 2.1.100 on this machine, and the job asks for >=2.1.300", lacks("claude", ">=2.1.300", has, releases))
	assert.Equal(t, "claude is a release that it does not say on this machine, and the job asks for 2.1.300", lacks("claude", "2.1.300", has, nil))
	assert.Equal(t, "qoder is not installed on this machine (not on PATH)", lacks("qoder", "", has, releases))
}

// A program is asked for its release once, and again when it has changed.
func TestReleasesOfPrograms(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a script is no program there")
	}
	dir := t.TempDir()
	claude := filepath.Join(dir, "claude")
	write := func(release string) {
		program(t, claude, "echo asked >> "+dir+"/asked\necho '"+release+" (Claude Code)'")
	}
	getenv := func(name string) string { return map[string]string{"PATH": dir}[name] }
	var o offers
	for _, release := range []string{"2.1.100", "2.1.1000"} {
		write(release)
		for range 2 {
			assert.Equal(t, map[string]string{"claude": release}, o.releases(t.Context(), getenv))
		}
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	require.NoError(t, err)
	assert.Equal(t, "asked\nasked\n", string(asked))
	require.NoError(t, os.Remove(claude))
	assert.Empty(t, o.releases(t.Context(), getenv))
}

// A job that no worker can run says why.
func TestNobodyRunsAJob(t *testing.T) {
	t.Parallel()
	e := &JobEntry{Job: "j", Protocol: 1, Labels: map[string]string{"zone": "a"}}
	here := map[string]string{"zone": "a"}
	lacks := HostEntry{Host: "x", Protocol: 1, Labels: here, Jobs: []HostJob{{Job: "j", Why: "claude is not installed"}}}
	others := []HostEntry{{Host: "y", Protocol: 1}, {Host: "z", Protocol: 1, Labels: here, Draining: true}, {Host: "old", Labels: here}}
	assert.Equal(t, "there is no worker", unrun(e, nil))
	assert.Equal(t, "x: claude is not installed; y: it lacks a label of the job; z: it ends; old: "+errNewer.Error(), unrun(e, append([]HostEntry{lacks}, others...)))
	for _, well := range []HostEntry{{Host: "new", Protocol: 2, Labels: here}, {Host: "runs", Protocol: 1, Labels: here, Jobs: []HostJob{{Job: "j"}}}} {
		assert.Empty(t, unrun(e, append([]HostEntry{lacks, well}, others...)))
	}
}

package command

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// batchRig is a job of agent processes. They and their children have the name of its
// directory in their environment; troupe itself has not.
type batchRig struct {
	binaries
	dir, file, script string
}

const rigEnv = "TROUPE_BATCH_TEST"

func (b binaries) newBatch(t *testing.T, tasks, yaml string) *batchRig {
	t.Helper()
	dir := t.TempDir()
	r := &batchRig{b, dir, filepath.Join(dir, "tasks.jsonl"), filepath.Join(dir, "script.yaml")}
	require.NoError(t, os.WriteFile(r.file, []byte(tasks), 0o600))
	r.play(t, yaml)
	t.Cleanup(func() {
		for _, pid := range r.alive(t) {
			_ = exec.Command("kill", "-9", pid).Run()
		}
	})
	return r
}

// play sets what agents do that start from now on.
func (r *batchRig) play(t *testing.T, yaml string) {
	t.Helper()
	require.NoError(t, os.WriteFile(r.script, []byte(yaml), 0o600))
}

func (r *batchRig) start(t *testing.T, args ...string) (*exec.Cmd, *screen) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), r.troupe, append([]string{
		"batch", "--agent", "claude", "--path", r.agent, "--yes",
		"--env", "TROUPE_SCRIPT=" + r.script, "--env", rigEnv + "=" + r.dir, "--env", "ANTHROPIC_API_KEY=k", r.file,
	}, args...)...)
	out := &screen{}
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, out
}

// ctl runs troupe ctl in a process of its own.
func (r *batchRig) ctl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), r.troupe, append([]string{"ctl", r.file}, args...)...).CombinedOutput()
	return string(text), err
}

// alive are the ids of the processes of the job's agents.
func (r *batchRig) alive(t *testing.T) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*") // a name below would list each directory
	require.NoError(t, err)
	for _, dir := range all {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && bytes.Contains(env, []byte(rigEnv+"="+r.dir)) {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

// awaitAlive waits until so many processes of agents live.
func (r *batchRig) awaitAlive(t *testing.T, least int, out fmt.Stringer) {
	t.Helper()
	require.Eventually(t, func() bool { return len(r.alive(t)) >= least }, time.Minute, 20*time.Millisecond, "%s", out)
}

// testBatchSignals: the first Ctrl-C lets the agents work, the second interrupts them, which
// these ignore, and the third kills them with all that they have started.
func (b binaries) testBatchSignals(t *testing.T) {
	t.Parallel()
	r := b.newBatch(t, strings.Repeat("{\"prompt\":\"x\"}\n", 3), slowTurn+`
misbehave:
  children: [{session: true}, {reparent: true, trap_term: true}]
  ignore: [interrupt]
  trap_term: true
  ignore_eof: true
`)
	cmd, out := r.start(t, append(patient(t), "-j", "2")...) // nothing but the third one ends them
	const all = 2 * 3                                        // two agents with two children each
	r.awaitAlive(t, all, out)
	require.Eventually(t, func() bool { // the turns have begun
		text, _ := filepath.Glob(filepath.Join(outOf(r.file), "transcripts", "*"))
		begun := 0
		for _, file := range text {
			if said, err := os.ReadFile(file); err == nil && bytes.Contains(said, []byte("begun")) {
				begun++
			}
		}
		return begun == 2
	}, time.Minute, 20*time.Millisecond, "%s", out)
	for _, said := range []string{"no others start", "interrupting; Ctrl-C again kills", "killing the agents"} {
		assert.Len(t, r.alive(t), all, "before %s", said)
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		out.await(t, said)
	}
	assert.Equal(t, 130, exitCode(t, cmd), out)
	soonEmpty(t, func() []string { return r.alive(t) })
	assert.Contains(t, out.String(), "0 of 3 tasks accepted, 3 left")
}

// testCtlAfterKill: when the owner of a job was killed, troupe ctl reads the journal and
// writes into it, and a resume ends what was left and obeys.
func (b binaries) testCtlAfterKill(t *testing.T) {
	t.Parallel()
	r := b.newBatch(t, `{"prompt":"quick"}`+strings.Repeat("\n{\"prompt\":\"slow\"}", 3), `
turns: [{when: quick, steps: [{text: finished}]}, {when: slow, steps: [{text: begun}, {delay: 1h}]}]
misbehave: {children: [{session: true}], ignore_eof: true}
`)
	cmd, out := r.start(t, "-j", "1")
	require.Eventually(t, func() bool {
		said, err := r.ctl(t)
		return err == nil && strings.Contains(said, "1 running, 2 queued, 1 over")
	}, time.Minute, 50*time.Millisecond, "%s", out)
	require.Eventually(t, func() bool {
		said, err := os.ReadFile(filepath.Join(outOf(r.file), "transcripts", "0002.1.jsonl"))
		return err == nil && bytes.Contains(said, []byte("begun"))
	}, time.Minute, 50*time.Millisecond, "%s", out)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	assert.NotEmpty(t, r.alive(t), "the agent lives on")

	for _, c := range []struct {
		args, want []string
		fails      bool
	}{
		{nil, []string{fmt.Sprintf("not running (process %d", cmd.Process.Pid), "0 running, 3 queued, 1 over, 1 accepted", "0002                 to resume"}, false},
		{[]string{"results"}, []string{"0001                 accepted"}, false},
		{[]string{"tail", "0002"}, []string{"begun"}, false},
		{[]string{"pause"}, []string{"no process"}, true},
		{[]string{"cancel", "0003"}, []string{"troupe batch --resume obeys"}, false},
	} {
		said, err := r.ctl(t, c.args...)
		assert.Equal(t, c.fails, err != nil, "%s: %s", c.args, said)
		for _, want := range c.want {
			assert.Contains(t, said, want, c.args)
		}
	}
	r.play(t, `default: [{text: finished}]`)
	cmd, out = r.start(t, "--resume")
	assert.Equal(t, exitResult, exitCode(t, cmd), out)
	assert.Contains(t, out.String(), "3 of 4 tasks accepted, 1 canceled")
	soonEmpty(t, func() []string { return r.alive(t) })
}

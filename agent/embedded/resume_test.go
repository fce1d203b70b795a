package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// A session that is resumed knows which files the model has read, and how they were then.
func TestAResumedSessionKnowsItsFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between func(path string) error // the lives
		call    reply
		file    string
		says    string
		fork    bool
	}{
		"an edit":           {nil, calling("c2", "Edit", `{"file_path":"a.txt","old_string":"one","new_string":"two"}`), "two\n", "has been updated successfully", false},
		"an edit in a fork": {nil, calling("c2", "Edit", `{"file_path":"a.txt","old_string":"one","new_string":"two"}`), "two\n", "has been updated successfully", true},
		"a file that has changed": {
			func(path string) error { return os.WriteFile(path, []byte("other\n"), 0o600) },
			calling("c2", "Write", `{"file_path":"a.txt","content":"mine"}`), "other\n", "File has been modified since read", false,
		},
		"a file that was not read": {nil, calling("c2", "Edit", `{"file_path":"b.txt","old_string":"one","new_string":"two"}`), "one\n", "File has not been read yet", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, o := plays(t, messagesAPI(), calling("c1", "Read", `{"file_path":"a.txt"}`), saying("read"), c.call, saying("done"))
			o.Model = "claude-sonnet-4-5" // it may not write what it has not read
			path := filepath.Join(o.Cwd, "a.txt")
			require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "b.txt"), []byte("one\n"), 0o600))
			client := open(t, o)
			ask(t, client, "read it")
			require.NoError(t, client.Close(t.Context()))
			if c.between != nil {
				require.NoError(t, c.between(path))
			}
			next := *o
			next.Resume, next.ForkSession = client.SessionID(), c.fork
			ask(t, open(t, &next), "change it")
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, c.file, string(content))
			all := p.seen()
			assert.Contains(t, all[len(all)-1], c.says)
		})
	}
}

// The shell of a session that is resumed is where the session began, and the model learns it.
func TestAResumedSessionIsBackWhereItBegan(t *testing.T) {
	t.Parallel()
	p, o := plays(t, messagesAPI(), calling("c1", "Bash", `{"command":"cd sub"}`), saying("there"), saying("back"))
	dir, err := filepath.EvalSymlinks(o.Cwd)
	require.NoError(t, err)
	o.Cwd = dir
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	c := open(t, o)
	ask(t, c, "go there")
	require.NoError(t, c.Close(t.Context()))
	next := *o
	next.Resume = c.SessionID()
	d := open(t, &next)
	ask(t, d, "and now?")
	ask(t, d, "and now?")
	all := p.seen()
	require.Len(t, all, 4)
	assert.Contains(t, all[1], "Primary working directory: "+dir+"/sub (was "+dir+")")
	back := "Primary working directory: " + dir + " (was " + dir + "/sub)"
	assert.NotContains(t, all[1], back)
	assert.Contains(t, all[2], back)
	assert.Equal(t, all[2], all[3][:len(all[2])])
	assert.NotContains(t, all[3][len(all[2]):], back, "it is said once")
}

// An answer that adds a directory counts for the calls that follow, and one that removes it, too.
func TestDirectoriesThatAnAnswerAdds(t *testing.T) {
	t.Parallel()
	other, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	write := func(id, name string) reply {
		return calling(id, "Write", `{"file_path":"`+filepath.Join(other, name)+`","content":"x"}`)
	}
	_, o := plays(t, messagesAPI(), write("c1", "a"), write("c2", "b"), calling("c3", "Bash", `{"command":"cat `+filepath.Join(other, "b")+`"}`), write("c4", "c"),
		calling("c5", "Bash", `{"command":"touch made"}`), write("c6", "d"), saying("done"))
	o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeAcceptEdits, false
	o.DisallowedTools = []string{"Read(/nowhere/**)"}
	var asked []string
	o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		if in.ToolUseID == "c5" {
			return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAsk}, nil
		}
		return sdk.PreToolUseOutput{}, nil
	})}
	o.CanUseTool = func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		asked = append(asked, r.ToolUseID)
		a := sdk.Allow()
		switch r.ToolUseID {
		case "c1":
			a.UpdatedPermissions = []protocol.PermissionUpdate{{Type: protocol.AddDirectories, Directories: []string{other, "relative"}, Destination: protocol.ToSession}}
		case "c5":
			a.UpdatedPermissions = []protocol.PermissionUpdate{{Type: protocol.RemoveDirectories, Directories: []string{other}, Destination: protocol.ToSession}}
		}
		return a, nil
	}
	assert.Equal(t, "done", ask(t, open(t, o), "go").Result)
	assert.Equal(t, []string{"c1", "c5", "c6"}, asked)
	for _, name := range []string{"a", "b", "c", "d"} {
		assert.FileExists(t, filepath.Join(other, name))
	}
}

// Hooks get the path of the session's own file.
func TestTheTranscriptOfHooks(t *testing.T) {
	t.Parallel()
	_, o := plays(t, messagesAPI(), saying("done"))
	var path atomic.Value
	o.Hooks = []sdk.Hook{sdk.OnStop(func(_ context.Context, in *protocol.StopInput) (sdk.FeedbackOutput, error) {
		path.Store(in.TranscriptPath)
		return sdk.FeedbackOutput{}, nil
	})}
	ask(t, open(t, o), "go")
	content, err := os.ReadFile(path.Load().(string))
	require.NoError(t, err)
	assert.Contains(t, string(content), `"done"`)
}

// Without a name, the model is the backend's again, or that of the options if the backend
// has no name.
func TestTheDefaultModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ backend, option, want string }{{"m", "", "m"}, {"m", "of the options", "m"}, {"", "of the options", "of the options"}} {
		p, o := plays(t, messagesAPI(), saying("done"))
		o.Backend, o.Model = embedded.New(embedded.Config{Model: p, Name: c.backend, Dir: t.TempDir()}), c.option
		client := open(t, o)
		for _, name := range []string{"other", ""} {
			require.NoError(t, client.SetModel(t.Context(), name))
			ask(t, client, "go")
		}
		assert.Equal(t, []string{"other", c.want}, p.models())
	}
}

// When the supervisor of a session restarts all its actors, the agent works on: no call is
// made twice, and the turn ends as it should.
func TestActorsThatRestart(t *testing.T) {
	t.Parallel()
	_, o := plays(t, messagesAPI(), calling("c1", "Bash", `{"command":"echo ran >> log; until [ -e go ]; do sleep 0.01; done"}`), saying("done"), saying("again"))
	o.Supervisors.Session.Strategy = supervisor.OneForAll
	up := make(chan struct{}, 2)
	child, ref := session.NewChild(supervisor.Child{Name: "fragile"}, func() session.Behavior[string] {
		return session.Behavior[string]{
			Start:  func(context.Context) error { up <- struct{}{}; return nil },
			Handle: func(context.Context, string) error { panic("on purpose") },
		}
	})
	o.Children = []*session.Child{child}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := open(t, o)
	<-up
	turn, err := c.Send(ctx, sdk.UserText("go"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		log, _ := os.ReadFile(filepath.Join(o.Cwd, "log")) // not yet there
		return len(log) > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, ref.Send("fall"))
	select {
	case <-up:
	case <-ctx.Done():
		require.Fail(t, "the child was not restarted")
	}
	require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "go"), nil, 0o600))
	r, err := turn.Result(ctx)
	require.NoError(t, err)
	assert.Equal(t, "done", r.Result)
	assert.Equal(t, "again", ask(t, c, "again").Result)
	log, err := os.ReadFile(filepath.Join(o.Cwd, "log"))
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(log))
}

// An agent that panics says why its session ended, and with restarts the next one continues.
func TestAnAgentThatPanics(t *testing.T) {
	t.Parallel()
	for _, restarts := range []int{0, 1} {
		var bad atomic.Bool
		_, o := plays(t, messagesAPI(), saying("one"), saying("two"))
		breakDisk(o, func() {
			if bad.Swap(false) {
				panic("on purpose")
			}
		})
		o.MaxRestarts = restarts
		c := open(t, o)
		ask(t, c, "first")
		bad.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		turn, err := c.Send(ctx, sdk.UserText("second"))
		require.NoError(t, err)
		r, err := turn.Result(ctx)
		cancel()
		if restarts > 0 {
			require.NoError(t, err)
			assert.Equal(t, "two", r.Result)
			continue
		}
		var failed *session.PanicError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "on purpose", failed.Value)
		assert.Contains(t, string(failed.Stack), "embedded")
	}
}

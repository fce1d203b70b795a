package embedded_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

// rewindable is a session with checkpoints.
type rewindable struct {
	*sdk.Client
	t       *testing.T
	o       *sdk.Options
	p       *played
	dir     string
	root    string // of sessions
	prompts []string
}

// withCheckpoints is one whose model gives these answers.
func withCheckpoints(t *testing.T, answers ...reply) *rewindable {
	t.Helper()
	p, o := plays(t, messagesAPI(), answers...)
	dir, err := filepath.EvalSymlinks(o.Cwd)
	require.NoError(t, err)
	c := &rewindable{t: t, o: o, p: p, dir: dir, root: t.TempDir()}
	o.Cwd, o.EnableFileCheckpointing = dir, session.Some(true)
	o.Backend = embedded.New(embedded.Config{Model: p, Name: "m", Dir: c.root})
	return c
}

// begin starts it, after what o sets.
func (c *rewindable) begin() *rewindable {
	c.t.Helper()
	c.Client = open(c.t, c.o)
	return c
}

// again resumes it.
func (c *rewindable) again(change func(o *sdk.Options)) *rewindable {
	c.t.Helper()
	id := c.SessionID()
	require.NoError(c.t, c.Close(c.t.Context()))
	next, o := *c, *c.o
	o.Resume = id
	if change != nil {
		change(&o)
	}
	next.o = &o
	return next.begin()
}

// ask makes a turn with a prompt whose uuid is kept.
func (c *rewindable) ask() *rewindable {
	c.t.Helper()
	turn, err := c.Send(c.t.Context(), sdk.UserText("go"))
	require.NoError(c.t, err)
	r, err := turn.Result(c.t.Context())
	require.NoError(c.t, err)
	require.False(c.t, r.IsError, r.Result)
	c.prompts = append(c.prompts, turn.UUID())
	return c
}

func (c *rewindable) put(name, content string) {
	c.t.Helper()
	require.NoError(c.t, os.MkdirAll(filepath.Dir(c.path(name)), 0o700))
	require.NoError(c.t, os.WriteFile(c.path(name), []byte(content), 0o600))
}

func (c *rewindable) path(name string) string { return filepath.Join(c.dir, name) }

// has says what a file has; "" if it is not there.
func (c *rewindable) has(name string) string {
	content, err := os.ReadFile(c.path(name))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(c.t, err)
	}
	return string(content)
}

// to rewinds to the n-th prompt.
func (c *rewindable) to(n int) *protocol.RewindFilesResponse {
	c.t.Helper()
	r, err := c.RewindFiles(c.t.Context(), c.prompts[n-1], false)
	require.NoError(c.t, err)
	require.True(c.t, r.CanRewind)
	return r
}

func writing(id, file, content string) reply {
	return calling(id, "Write", `{"file_path":"`+file+`","content":"`+content+`"}`)
}

func editing(id, file, from, to string) reply {
	return calling(id, "Edit", `{"file_path":"`+file+`","old_string":"`+from+`","new_string":"`+to+`"}`)
}

// threeTurns write and edit two files: a.txt was there before the second prompt and sub/b.txt is
// new in it.
func threeTurns(t *testing.T) *rewindable {
	t.Helper()
	c := withCheckpoints(t, saying("hello"),
		editing("c1", "a.txt", "one", "two"), writing("c2", "sub/b.txt", "new\\n"), saying("done"),
		editing("c3", "a.txt", "two", "three\\nfour"), saying("done"), saying("more"), saying("more"))
	c.put("a.txt", "one\n")
	require.NoError(t, os.Chmod(c.path("a.txt"), 0o755))
	return c.begin().ask().ask().ask()
}

func TestFilesAreRewound(t *testing.T) {
	t.Parallel()
	c := threeTurns(t)
	require.Equal(t, "three\nfour\n", c.has("a.txt"))
	dry, err := c.RewindFiles(t.Context(), c.prompts[1], true)
	require.NoError(t, err)
	assert.Equal(t, &protocol.RewindFilesResponse{CanRewind: true, FilesChanged: []string{c.path("a.txt"), c.path("sub/b.txt")}, Insertions: 1, Deletions: 3}, dry)
	assert.Equal(t, "three\nfour\n", c.has("a.txt"), "nothing has changed")

	c.ask() // from here on there is a checkpoint of what the third turn has done
	for _, step := range []struct {
		to   int
		a, b string
	}{{3, "two\n", "new\n"}, {2, "one\n", ""}, {4, "three\nfour\n", "new\n"}, {1, "one\n", ""}, {3, "two\n", "new\n"}} {
		r := c.to(step.to)
		assert.Equal(t, step.a, c.has("a.txt"), "at prompt %d", step.to)
		assert.Equal(t, step.b, c.has("sub/b.txt"), "at prompt %d", step.to)
		assert.NotEmpty(t, r.FilesChanged)
		assert.Empty(t, r.KeptFiles, "only the agent has changed them")
		assert.Empty(t, r.SkippedFiles)
	}
	info, err := os.Stat(c.path("a.txt"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode().Perm())
	assert.Equal(t, &protocol.RewindFilesResponse{CanRewind: true}, c.to(3), "there is nothing to do")

	// The reader of Claude Code's checkpoints reads these, too.
	all := transcript.Sessions{Vendor: transcript.Claude, Root: c.root}
	r, err := all.Rewind(t.Context(), c.SessionID(), c.prompts[1], transcript.RewindOptions{DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, []transcript.RewoundFile{{Path: c.path("a.txt"), Action: transcript.RewindWrite}, {Path: c.path("sub/b.txt"), Action: transcript.RewindRemove}}, r.Files)
	left, err := os.ReadDir(c.dir)
	require.NoError(t, err)
	assert.Len(t, left, 2, "nothing else is left there")
}

// A session that is resumed, and a fork, have the checkpoints of before.
func TestALaterLifeRewinds(t *testing.T) {
	t.Parallel()
	t.Run("resumed", func(t *testing.T) {
		t.Parallel()
		c := threeTurns(t).again(nil)
		c.to(2)
		assert.Equal(t, "one\n", c.has("a.txt"))
		c.ask()
		c.put("a.txt", "other\n")
		c.to(4)
		assert.Equal(t, "one\n", c.has("a.txt"), "the file that was rewound is that of the next prompt")
	})
	t.Run("a fork without its parent", func(t *testing.T) {
		t.Parallel()
		c := threeTurns(t)
		parent := c.SessionID()
		fork := c.again(func(o *sdk.Options) { o.ForkSession = true }).ask()
		require.NotEqual(t, parent, fork.SessionID())
		require.NoError(t, os.RemoveAll(filepath.Join(c.root, "file-history", parent)))
		fork.to(3)
		assert.Equal(t, "two\n", fork.has("a.txt"))
		fork.to(4)
		assert.Equal(t, "three\nfour\n", fork.has("a.txt"))
	})
	t.Run("resumed without the option", func(t *testing.T) {
		t.Parallel()
		c := threeTurns(t).again(func(o *sdk.Options) { o.EnableFileCheckpointing = session.Some(false) })
		refused(t, c, c.prompts[1], "rewind_off", "Set Options.EnableFileCheckpointing")
	})
}

// refused asks for a rewind that is an error.
func refused(t *testing.T, c *rewindable, prompt, code, says string) {
	t.Helper()
	_, err := c.RewindFiles(t.Context(), prompt, false)
	var e *session.ControlError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, code, e.Code)
	assert.Contains(t, e.Message, says)
	assert.Equal(t, "three\nfour\n", c.has("a.txt"), "nothing has changed")
}

func TestRewindsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := threeTurns(t)
	refused(t, c, "00000000-0000-4000-8000-000000000000", "no_checkpoint", "No file checkpoint found for this message.")
	refused(t, c, "", "no_checkpoint", "names no user_message_id")

	c = withCheckpoints(t, writing("c1", "a.txt", "three\\nfour\\n"), calling("c2", "Bash", `{"command":"true"}`), saying("done"))
	asked := false
	c.o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		if in.ToolName == "Bash" {
			asked = true
			refused(t, c, "00000000-0000-4000-8000-000000000000", "turn_running", "wait for the result of the turn, or interrupt it")
		}
		return sdk.PreToolUseOutput{}, nil
	})}
	c.begin().ask()
	assert.True(t, asked)
	c.to(1)
	assert.Empty(t, c.has("a.txt"), "the turn is over")
}

// Others do something to the files before they are rewound.
func TestFilesThatOthersHaveChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others func(t *testing.T, c *rewindable)
		then   func(t *testing.T, c *rewindable, r *protocol.RewindFilesResponse)
		a, b   string // at the second prompt; the agent had "one" and nothing there
	}{
		"changed": {
			func(_ *testing.T, c *rewindable) { c.put("a.txt", "theirs\n") },
			func(t *testing.T, c *rewindable, r *protocol.RewindFilesResponse) {
				content, err := os.ReadFile(r.KeptFiles[c.path("a.txt")])
				require.NoError(t, err)
				assert.Equal(t, "theirs\n", string(content))
				assert.Len(t, r.KeptFiles, 1, "the agent has written the other one")
			}, "one\n", "",
		},
		"made in place of a new one": {
			func(_ *testing.T, c *rewindable) { c.put("sub/b.txt", "theirs\n") },
			func(t *testing.T, c *rewindable, r *protocol.RewindFilesResponse) {
				content, err := os.ReadFile(r.KeptFiles[c.path("sub/b.txt")])
				require.NoError(t, err)
				assert.Equal(t, "theirs\n", string(content))
			}, "one\n", "",
		},
		"deleted": {
			func(t *testing.T, c *rewindable) {
				require.NoError(t, os.Remove(c.path("a.txt")))
				require.NoError(t, os.RemoveAll(c.path("sub")))
			},
			func(t *testing.T, c *rewindable, r *protocol.RewindFilesResponse) {
				assert.Equal(t, []string{c.path("a.txt")}, r.FilesChanged)
				assert.Empty(t, r.KeptFiles)
			}, "one\n", "",
		},
		"replaced by a link": {
			func(t *testing.T, c *rewindable) {
				require.NoError(t, os.Remove(c.path("a.txt")))
				require.NoError(t, os.Symlink(c.path("other.txt"), c.path("a.txt")))
				c.put("other.txt", "theirs\n")
			},
			func(t *testing.T, c *rewindable, r *protocol.RewindFilesResponse) {
				assert.Equal(t, int64(1), r.SkippedLinks)
				assert.Contains(t, r.SkippedFiles[c.path("a.txt")], "it is a link")
				assert.Equal(t, "theirs\n", c.has("other.txt"))
			}, "theirs\n", "",
		},
		"directory replaced by a link that leads out": {
			func(t *testing.T, c *rewindable) {
				require.NoError(t, os.RemoveAll(c.path("sub")))
				out := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(out, "b.txt"), []byte("theirs\n"), 0o600))
				require.NoError(t, os.Symlink(out, c.path("sub")))
			},
			func(t *testing.T, c *rewindable, r *protocol.RewindFilesResponse) {
				assert.Contains(t, r.SkippedFiles[c.path("sub/b.txt")], "is a link to another place")
			}, "one\n", "theirs\n",
		},
		"without its copy": {
			func(t *testing.T, c *rewindable) {
				require.NoError(t, os.RemoveAll(filepath.Join(c.root, "file-history", c.SessionID())))
			},
			func(t *testing.T, c *rewindable, r *protocol.RewindFilesResponse) {
				assert.Contains(t, r.SkippedFiles[c.path("a.txt")], "its backup cannot be read")
			}, "three\nfour\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := threeTurns(t)
			c.others(t, s)
			c.then(t, s, s.to(2))
			assert.Equal(t, c.a, s.has("a.txt"))
			assert.Equal(t, c.b, s.has("sub/b.txt"))
		})
	}
}

// A file that is too large at a prompt has no copy, and is left alone; the others are rewound.
func TestAFileThatIsTooLargeToKeep(t *testing.T) {
	t.Parallel()
	c := withCheckpoints(t, writing("c1", "large", "x"), writing("c2", "small", "x"), saying("done"), writing("c3", "small", "y"), saying("done"), saying("done")).begin().ask()
	require.NoError(t, os.Truncate(c.path("large"), 64<<20+1))
	c.ask()
	require.NoError(t, os.Truncate(c.path("large"), 1))
	c.ask()
	r := c.to(2)
	assert.Equal(t, map[string]string{c.path("large"): "it has no backup: it is larger than 64 MB"}, r.SkippedFiles)
	assert.Equal(t, "x", c.has("large"))
	assert.Equal(t, "x", c.has("small"))
	c.put("large", "z")
	c.to(3)
	assert.Equal(t, "x", c.has("large"), "it was small again")
	c.to(1)
	assert.Empty(t, c.has("large"))
}

// A file that could not be read when its copy was to be made is not written, although the tool can read it.
func TestAFileThatCannotBeReadForAMoment(t *testing.T) {
	t.Parallel()
	refused := 0
	for fails := range int32(6) {
		c := withCheckpoints(t, calling("c0", "Read", `{"file_path":"a.txt"}`), writing("c1", "a.txt", "x"), saying("done"))
		c.put("a.txt", "one")
		var reads atomic.Int32
		c.o.Backend = &changed{c.o.Backend.(backend.Backend), func(s *backend.Seams) {
			s.Disk = func(op, path string) error {
				if op == "read" && filepath.Base(path) == "a.txt" && reads.Add(1) == fails {
					return syscall.EIO
				}
				return nil
			}
		}}
		c.begin().ask()
		if c.has("a.txt") == "one" {
			refused++
		}
		c.to(1)
		assert.Equal(t, "one", c.has("a.txt"), "read %d of %d", fails, reads.Load())
	}
	assert.Positive(t, refused)
}

// A file that has not changed since its copy was made is not read at the next prompt.
func TestAFileThatHasNotChanged(t *testing.T) {
	t.Parallel()
	c := withCheckpoints(t, writing("c1", "a.txt", "x"), saying("done"), saying("done"), saying("done"), saying("done"))
	var reads atomic.Int32
	c.o.Backend = &changed{c.o.Backend.(backend.Backend), func(s *backend.Seams) {
		s.Disk = func(op, path string) error {
			if op == "read" && filepath.Base(path) == "a.txt" {
				reads.Add(1)
			}
			return nil
		}
	}}
	c.begin().ask().ask()
	before := reads.Load()
	c.ask()
	assert.Equal(t, before, reads.Load())
	c.put("a.txt", "other")
	c.ask()
	assert.Greater(t, reads.Load(), before)
	c.to(3)
	assert.Equal(t, "x", c.has("a.txt"))
}

// Files outside of the session's directories are left alone: the session's file, which says what
// they had, is one that commands of the agent can write.
func TestFilesOutsideOfTheWorkspace(t *testing.T) {
	t.Parallel()
	for name, added := range map[string]bool{"outside": false, "in a further directory": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			file := filepath.Join(out, "a.txt")
			c := withCheckpoints(t, writing("c1", file, "x"), saying("done"))
			if added {
				c.o.AdditionalDirectories = []string{out}
			}
			r := c.begin().ask().to(1)
			if added {
				assert.Equal(t, []string{file}, r.FilesChanged)
				assert.NoFileExists(t, file)
				return
			}
			assert.Equal(t, map[string]string{file: "it is outside of the session's directory"}, r.SkippedFiles)
			assert.FileExists(t, file)
		})
	}
}

// A file that cannot be kept is not changed, and the model reads why.
func TestAFileThatCannotBeKept(t *testing.T) {
	t.Parallel()
	c := withCheckpoints(t, editing("c1", "a.txt", "one", "two"), saying("done"))
	c.put("a.txt", "one\n")
	require.NoError(t, os.WriteFile(filepath.Join(c.root, "file-history"), nil, 0o600))
	c.begin().ask()
	assert.Equal(t, "one\n", c.has("a.txt"))
	all := c.p.seen()
	assert.Contains(t, all[len(all)-1], "Nothing was written: the present content of the file could not be kept for a rewind")
}

// Without the option nothing is kept, and where nothing is stored it is an error.
func TestSessionsWithoutCheckpoints(t *testing.T) {
	t.Parallel()
	c := withCheckpoints(t, writing("c1", "a.txt", "x"), saying("done"))
	c.o.EnableFileCheckpointing = session.Opt[bool]{}
	c.begin().ask()
	assert.NoDirExists(t, filepath.Join(c.root, "file-history"))

	c = withCheckpoints(t)
	c.o.PersistSession = session.Some(false)
	_, err := connect(t, c.o)
	var e *session.ConfigError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "EnableFileCheckpointing", e.Option)
}

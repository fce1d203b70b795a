package acpagent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/transcript"
)

// Config is the configuration of an agent. The zero value serves the one agent that is
// installed, without the sessions on disk.
type Config struct {
	// Options are the options of each session, apart from what the editor says: the
	// working directory, additional directories and MCP servers, which are added. CanUseTool,
	// OnElicitation and OnEvent are called as well where they are set; a CanUseTool of your
	// own replaces the editor's questions.
	Options sdk.Options
	// Sessions returns the sessions on disk of a directory, or of all directories if dir
	// is "". nil: the agent cannot load, resume, list or delete sessions.
	Sessions func(dir string) *transcript.Sessions
	// AllowDelete lets the editor delete sessions from disk. Default: false, which
	// refuses.
	AllowDelete bool
	// Name, Title and Version describe the agent to the editor. "": troupe.
	Name, Title, Version string
	// MaxLine is the longest line that is read, in bytes. 0: acp.DefaultMaxLine.
	MaxLine int
	// CancelGrace is how long a cancelled turn may continue until the agent's process
	// is ended; the next prompt starts another one. 0: 10 s.
	CancelGrace time.Duration
	// NoRecovery leaves Options.MaxRestarts as it is. Otherwise an agent that dies is
	// started again, three times at most if Options.MaxRestarts is 0.
	NoRecovery bool
	// Logger gets failures, without content of the conversation. nil: no log.
	Logger *slog.Logger
}

const (
	// defaultGrace is the default of CancelGrace.
	defaultGrace = 10 * time.Second
	// closeTimeout is that of sessions whose options do not set one: the editor waits
	// for it.
	closeTimeout = 8 * time.Second
	// lastWords is how long the last answers may take to be written.
	lastWords = time.Second
	// restarts is how often an agent is started again.
	restarts = 3
)

// Serve serves one editor: it reads r and writes w until r ends or ctx ends, and then
// closes all sessions. It returns when their processes are gone, Options.CloseTimeout
// (8 s if it is 0) and a second later at most, also if w has no reader. Nothing else
// may write to w. The error is that of r, the cause of ctx, or a [*sessions.LeftoverError].
func Serve(ctx context.Context, r io.Reader, w io.Writer, c Config) error {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.CancelGrace <= 0 {
		c.CancelGrace = defaultGrace
	}
	c.Options.CloseTimeout = cmp.Or(c.Options.CloseTimeout, closeTimeout)
	s := &server{config: c, sessions: map[acp.SessionID]*session{}}
	in := &input{Reader: r, end: make(chan struct{})}
	s.conn = acp.NewConn(in, w, acp.Handler{Request: s.request, Notification: s.notification}, acp.ConnOptions{
		MaxLine:   c.MaxLine,
		OnProblem: func(err error) { c.Logger.Warn("the editor wrote a line that is no message", "problem", err) },
	})
	ended := make(chan error, 1)
	start(func() { ended <- s.conn.Serve(ctx) })
	var err error
	//troupe:select both are the end
	select {
	case <-in.end:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	err = errors.Join(err, s.closeAll())
	// The prompts are answered now, if the editor still reads.
	late := make(chan struct{})
	stop := after(lastWords, func() { close(late) })
	defer stop()
	//troupe:select after the wait both are the same
	select {
	case problem := <-ended:
		err = errors.Join(err, problem)
	case <-late:
	}
	return err
}

// input is a reader that says when it has ended.
type input struct {
	io.Reader
	once sync.Once
	end  chan struct{}
}

func (i *input) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	if err != nil {
		i.once.Do(func() { close(i.end) })
	}
	return n, err
}

// start runs f on its own goroutine.
func start(f func()) {
	go f() //troupe:seam the package is on the real side: an editor, streams, processes
}

// after calls f later, unless it is stopped before.
func after(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop //troupe:seam the package is on the real side
}

// newID makes a UUID of version 4.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) //troupe:seam the id of a session has to be new in the world
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

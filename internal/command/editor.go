package command

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"
)

const (
	promptText = "> "
	// typedLimit is how much may be typed ahead, in bytes; the terminal is read no further.
	typedLimit = 1 << 20
	// historyLimit is how many lines the up arrow finds.
	historyLimit = 1000
)

// editor reads the lines of a conversation from a terminal whose keys it edits: arrows, a
// history, pastes of several lines. The terminal sends each key and echoes none. Text
// that is typed while no line is asked for is part of the next prompt, never of a
// question.
type editor struct {
	out  io.Writer // the terminal
	size func() (width, height int)

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, when something below changes
	typed   []byte        // keys that were not read yet
	ahead   []byte        // keys before a question
	err     error         // of the terminal, which has ended
	line    *term.Terminal
	ofChat  bool   // line is a prompt, not a question
	dirty   bool   // keys were read for line
	ending  ending // why line has to end
	held    int    // how many want no prompt now
	texts   bool   // the agent's text is one of them
	draft   string // of a prompt that had to end
	past    past
}

// ending is why a line ends without Enter.
type ending int

const (
	notEnding ending = iota
	pausing          // something else is shown; the line comes again
	dropping         // Ctrl-C
)

// start has the terminal mark pastes, and reads its keys until it ends.
func (e *editor) start(in io.Reader) {
	_, _ = io.WriteString(e.out, askPastes)
	go e.read(in)
}

// stop sets the terminal as it was.
func (e *editor) stop(restore func()) {
	_, _ = io.WriteString(e.out, leavePastes)
	restore()
}

// ended reports whether the terminal has ended.
func (e *editor) ended() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err != nil
}

// read reads the terminal to its end.
func (e *editor) read(in io.Reader) {
	var k keys
	for b := make([]byte, 4096); ; {
		n, err := in.Read(b)
		e.mu.Lock()
		e.typed = append(e.typed, k.plain(b[:n])...)
		e.err = err
		e.changes()
		for len(e.typed) > typedLimit && err == nil {
			e.wait(context.Background())
		}
		e.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// changes wakes who waits. The lock is held.
func (e *editor) changes() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// wait waits for a change, with the lock held.
func (e *editor) wait(ctx context.Context) {
	changed := e.changed
	e.mu.Unlock()
	defer e.mu.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// prompt asks for the next line of the conversation. It returns io.EOF at the end of the
// terminal and for Ctrl-D.
func (e *editor) prompt(ctx context.Context) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.letTexts()
	for {
		for e.held > 0 && ctx.Err() == nil {
			e.wait(ctx)
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		e.typed = slices.Concat(pasted(e.draft), e.ahead, e.typed)
		e.draft, e.ahead = "", nil
		line, how, err := e.edit(ctx, promptText, true)
		switch {
		case how == pausing:
			e.draft = line
			continue
		case how == dropping:
			continue
		case err != nil:
			return "", err
		}
		e.past.keep(line)
		return unmarked(line), nil
	}
}

// answer asks for a line that answers a question, and takes no key that was typed before
// it. The caller holds the prompt.
func (e *editor) answer(ctx context.Context, question string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ahead, e.typed = append(e.ahead, e.typed...), nil
	line, _, err := e.edit(ctx, question, false)
	return unmarked(line), err
}

// edit has a line edited until Enter. The lock is held, but not meanwhile.
func (e *editor) edit(ctx context.Context, prompt string, ofChat bool) (line string, how ending, err error) {
	t := term.NewTerminal(&lineKeys{e, ctx}, prompt)
	t.History = &e.past
	if !ofChat {
		t.History = &past{}
	}
	e.line, e.ofChat, e.dirty = t, ofChat, false
	e.mu.Unlock()
	_ = t.SetSize(e.size()) // it writes nothing yet
	line, err = t.ReadLine()
	if err != nil && ofChat {
		_, _ = io.WriteString(e.out, "\r\n") // the prompt has no end
	}
	e.mu.Lock()
	how, e.ending, e.line = e.ending, notEnding, nil
	e.changes()
	return line, how, err
}

// lineKeys are the keys of one line.
type lineKeys struct {
	of  *editor
	ctx context.Context //nolint:containedctx // of the line
}

// Read returns keys up to the end of a line, so that none of the next one are lost.
func (k *lineKeys) Read(p []byte) (int, error) {
	e := k.of
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		switch {
		case k.ctx.Err() != nil:
			return 0, context.Cause(k.ctx)
		case e.ending != notEnding:
			return copy(p, "\r"), nil
		case len(e.typed) > 0:
			n := min(len(p), len(e.typed))
			if end := slices.IndexFunc(e.typed[:n], func(b byte) bool { return b == '\r' || b == '\n' }); end >= 0 {
				n = end + 1
			}
			copy(p, e.typed[:n])
			e.typed, e.dirty = e.typed[n:], true
			e.changes()
			return n, nil
		case e.err != nil:
			return 0, e.err
		}
		e.wait(k.ctx)
	}
}

// Write writes to the terminal.
func (k *lineKeys) Write(p []byte) (int, error) { return k.of.out.Write(p) }

// hold takes the prompt away, with what was typed, until release is called.
func (e *editor) hold() (release func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held++
	e.end(pausing)
	return sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.held--
		e.changes()
	})
}

// end ends the prompt that is edited, if there is one, and waits until it has. The lock is held.
func (e *editor) end(why ending) {
	if e.line == nil || !e.ofChat {
		return
	}
	if e.ending == notEnding {
		e.ending = why
		e.changes()
	}
	for line := e.line; e.line == line; {
		e.wait(context.Background())
	}
}

// text takes the prompt away until proceed, since text of the agent is to be written.
func (e *editor) text() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.texts {
		e.texts = true
		e.held++
	}
	e.end(pausing)
}

// proceed says that the agent's text is complete.
func (e *editor) proceed() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.letTexts()
}

func (e *editor) letTexts() {
	if e.texts {
		e.texts = false
		e.held--
		e.changes()
	}
}

// drop drops what was typed at the prompt. It reports whether anything was.
func (e *editor) drop() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	dropped := e.line != nil && e.ofChat && e.dirty
	if dropped {
		e.end(dropping)
	}
	return dropped
}

// above writes lines above the one that is edited. It reports whether there is one.
func (e *editor) above(p []byte) bool {
	e.mu.Lock()
	line := e.line
	e.mu.Unlock()
	if line == nil {
		return false
	}
	_, err := line.Write(p)
	return err == nil
}

// resized draws the line again, as wide as the terminal is now.
func (e *editor) resized() {
	e.mu.Lock()
	line := e.line
	e.mu.Unlock()
	if line != nil {
		_ = line.SetSize(e.size())
	}
}

// past are the lines that were entered; it implements [term.History].
type past struct{ lines []string }

// Add does nothing: not every line that ends was entered.
func (*past) Add(string) {}

// Len is how many lines there are.
func (h *past) Len() int { return len(h.lines) }

// At is the nth line from the last.
func (h *past) At(n int) string { return h.lines[len(h.lines)-1-n] }

func (h *past) keep(line string) {
	if strings.TrimSpace(line) == "" || len(h.lines) > 0 && h.At(0) == line {
		return
	}
	if h.lines = append(h.lines, line); len(h.lines) > historyLimit {
		h.lines = h.lines[1:]
	}
}

// errNoEditor says that lines are read as they come.
var errNoEditor = errors.New("the terminal cannot be edited")

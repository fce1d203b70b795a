package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lmittmann/tint"
)

// noteLimit is how long a note may take.
const noteLimit = time.Second

// console is where a command writes. Text and lines go to stdout, from one
// goroutine; everything else goes to stderr, from any.
type console struct {
	out            io.Writer
	outTTY, errTTY bool
	color          bool          // on stderr
	quiet          bool          // without remarks and progress
	patience       time.Duration // of [console.working]; 0: patience
	editor         *editor       // of the lines that are typed; nil without one

	errMu sync.Mutex
	err   io.Writer
	above func(text []byte) bool // writes above the bar on stderr; nil if there is no bar

	mu      sync.Mutex // never held while something is written
	begun   bool       // something was written to stdout
	fresh   bool       // the next text begins a paragraph
	midline bool       // stdout's last line has no end yet
	echo    bool       // nor has the terminal's, after a ^C or a prompt
}

func newConsole(p process) *console {
	return &console{
		out: p.stdout, err: p.stderr, outTTY: p.stdoutTTY, errTTY: p.stderrTTY,
		color: p.stderrTTY && p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb", patience: p.patience,
	}
}

// text writes a piece of the agent's text to stdout.
func (c *console) text(s string) error {
	if s == "" {
		return nil
	}
	if c.outTTY && c.editor != nil {
		c.editor.text()
	}
	c.mu.Lock()
	if c.fresh && c.begun || c.outTTY && c.echo {
		s = "\n" + s
	}
	c.echo = c.echo && !c.outTTY
	c.begun, c.fresh, c.midline = true, false, !strings.HasSuffix(s, "\n")
	c.mu.Unlock()
	return c.write(s)
}

// endParagraph ends the line on stdout, if there is one.
func (c *console) endParagraph() error {
	c.mu.Lock()
	end := c.midline
	c.fresh, c.midline = true, false
	c.mu.Unlock()
	if end {
		return c.write("\n")
	}
	return nil
}

// line writes a whole line to stdout.
func (c *console) line(b []byte) error { return c.write(string(b) + "\n") }

// write writes to stdout. A program that reads it gets every byte.
func (c *console) write(s string) error {
	if c.outTTY {
		s = printable(s)
	}
	if _, err := io.WriteString(c.out, s); err != nil {
		return &outputError{err}
	}
	return nil
}

// silent reports whether nothing was written to stdout.
func (c *console) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.begun
}

// shared reports whether a terminal shows both stdout and stderr.
func (c *console) shared() bool { return c.outTTY && c.errTTY }

// echoed says that the terminal has echoed a ^C, which has no line end. One that is edited
// echoes nothing.
func (c *console) echoed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.echo = c.errTTY && c.editor == nil
}

// prompt asks for the next line of a conversation.
func (c *console) prompt() {
	c.say("> ")
	c.echoed()
}

// typed says that a line was typed, which ended that of the prompt.
func (c *console) typed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.echo = false
}

// begin says that what is written to stdout next is another answer.
func (c *console) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun, c.fresh = false, false
}

// Write implements [io.Writer] for stderr. On a terminal that shows both, it
// does not write into a line of stdout.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	cut := c.echo || c.shared() && c.midline
	c.midline, c.echo = c.midline && !cut, false
	c.mu.Unlock()
	c.errMu.Lock()
	defer c.errMu.Unlock()
	if c.editor != nil && !cut && c.editor.above(p) {
		return len(p), nil
	}
	if cut {
		_, _ = io.WriteString(c.err, "\n") // stderr is the last resort
	}
	text := c.legible(string(p))
	if c.above != nil && c.above([]byte(text)) {
		return len(p), nil
	}
	if _, err := io.WriteString(c.err, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// toMargin moves the cursor back before the ^C that the terminal has echoed: what moves on stderr
// is erased from the cursor's column on.
func (c *console) toMargin() {
	c.errMu.Lock()
	defer c.errMu.Unlock()
	if c.above != nil {
		_, _ = io.WriteString(c.err, "\r")
	}
}

// draw has whole lines for stderr written by above, until the next call.
func (c *console) draw(above func(text []byte) bool) {
	c.errMu.Lock()
	defer c.errMu.Unlock()
	c.above = above
}

// ownStyles are the styles of this command and of its log. No other sequence of a terminal
// leaves the command.
var ownStyles = regexp.MustCompile(`\x1b\[(?:0|1|2|22|31|9[1-3])(?:;22?)?m`)

// legible is a text for stderr: everything but the command's own styles is [printable].
func (c *console) legible(s string) string {
	if !c.color {
		return printable(s)
	}
	var b strings.Builder
	for {
		at := ownStyles.FindStringIndex(s)
		if at == nil {
			return b.String() + printable(s)
		}
		b.WriteString(printable(s[:at[0]]) + s[at[0]:at[1]])
		s = s[at[1]:]
	}
}

// say writes to stderr.
func (c *console) say(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) }

// note writes lines about the command itself to stderr. A stderr that stands
// still does not hold up a run that is to end.
func (c *console) note(format string, args ...any) {
	text := "troupe: " + strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n        ")
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.say("%s\n", text)
	}()
	limit := time.NewTimer(noteLimit)
	defer limit.Stop()
	select {
	case <-written:
	case <-limit.C:
	}
}

// remark writes a line about the command that is not an error, unless --quiet was given.
func (c *console) remark(format string, args ...any) {
	if !c.quiet {
		c.note(format, args...)
	}
}

// aside writes a line that belongs to a remark.
func (c *console) aside(format string, args ...any) {
	if !c.quiet {
		c.say(format, args...)
	}
}

// patience is how long something may take before a person at a terminal reads what it is.
const patience = time.Second

// working has a person at a terminal read what takes so long, if it takes longer than patience. The
// caller calls done at its end.
func (c *console) working(on string) (done func()) {
	if c.quiet || !c.errTTY {
		return func() {}
	}
	timer := time.AfterFunc(cmp.Or(c.patience, patience), func() { c.say("%s\n", c.paint(dim, on+"…")) })
	return func() { timer.Stop() }
}

// usage says why nothing was started, which is a mistake in the arguments unless the error is another one.
func (c *console) usage(err error) int {
	c.note("%v", err)
	var ended *endedError
	var start *startFailure
	switch {
	case errors.As(err, &ended):
		return ended.code()
	case errors.As(err, &start):
		return exitStart
	}
	return exitUsage
}

// print writes s to stdout and returns the exit code.
func (c *console) print(s string) int {
	if s == "" {
		return exitOK
	}
	if err := c.write(printable(s)); err != nil {
		return c.outputLost(err)
	}
	return exitOK
}

// outputLost reports that the output could not be written, and returns the exit code. A
// reader that went away, such as head, is not reported.
func (c *console) outputLost(err error) int {
	if errors.Is(err, syscall.EPIPE) {
		return exitPipe
	}
	c.note("%s", printable(err.Error()))
	return exitOutput
}

// Styles of text on stderr.
const (
	dim  = "2"
	bold = "1"
	red  = "31"
)

func (c *console) paint(style, s string) string {
	if !c.color || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// logger logs to stderr, in colours where that is welcome. Unless it asks for more than
// warnings, they look like the command's own.
func (c *console) logger(level slog.Level) *slog.Logger {
	if level >= slog.LevelWarn {
		return slog.New(&remarks{console: c, least: level})
	}
	return slog.New(tint.NewTextHandler(c, &tint.Options{
		Level: level, NoColor: !c.color, TimeFormat: "15:04:05.000",
	}))
}

// printable makes the characters visible that would steer a terminal, so that nothing an
// agent writes can repaint what a person decides on. A byte that is not UTF-8 is made
// visible, too: some terminals take it for a control character.
func printable(s string) string {
	if strings.IndexFunc(s, steers) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "\\x%02x", s[0])
		case steers(r):
			fmt.Fprintf(&b, "\\x%02x", r)
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func steers(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

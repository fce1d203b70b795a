package command

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet"
)

// progress shows a job while it runs: on a terminal a bar, with what each task does
// below it; elsewhere a line for each result.
type progress struct {
	c     *console
	quiet bool
	total int
	out   string

	mu      sync.Mutex
	done    map[string]bool     // a task that is requeued has another result
	first   bool                // an error was shown in full
	useless []*fleet.TaskResult // the first tasks whose calls were all denied; nil: the hint was given
	bars    *mpb.Progress
	bar     *mpb.Bar
	stop    chan struct{}
	ended   sync.WaitGroup
}

func newProgress(c *console, quiet bool, total int, out string) *progress {
	return &progress{c: c, quiet: quiet, total: total, out: out, done: map[string]bool{}, useless: []*fleet.TaskResult{}, stop: make(chan struct{})}
}

const (
	barWidth    = 30
	refreshRate = 150 * time.Millisecond
	shownTasks  = 8
)

// begin draws the bar, where there is a terminal.
func (p *progress) begin(h *fleet.Handle) {
	if p.quiet || !p.c.errTTY {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	bars := mpb.New(mpb.WithOutput(p.c.err), mpb.WithWidth(barWidth), mpb.WithRefreshRate(refreshRate), mpb.WithAutoRefresh())
	p.bars = bars
	p.c.draw(func(text []byte) bool {
		_, err := bars.Write(text)
		return err == nil // else the bar has ended
	})
	line := func(decor.Statistics) string { return barText(h.Progress(), time.Now()) }
	tasks := mpb.BarFillerFunc(func(w io.Writer, _ decor.Statistics) error { return drawTasks(w, h.Progress(), time.Now()) })
	p.bar = p.bars.New(int64(p.total), mpb.BarStyle(), mpb.AppendDecorators(decor.Any(line)), mpb.BarExtender(tasks, false))
	p.ended.Go(func() {
		tick := time.NewTicker(refreshRate)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.bar.SetCurrent(min(int64(h.Progress().Finished), int64(p.total)-1)) // the last one ends the bar
			case <-p.stop:
				return
			}
		}
	})
}

// barText is the text after the bar.
func barText(p fleet.Progress, now time.Time) string {
	failed := p.Finished - p.ByStatus[fleet.Accepted]
	text := fmt.Sprintf(" %d/%d", p.Finished, p.Total)
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	text += fmt.Sprintf(", %d running, %d queued, %s", len(p.Running), p.Queued, spent(p.Usage))
	if p.Outage != "" && p.Stop == nil {
		return text + ", waiting: " + shorten(p.Outage, 60)
	}
	if p.Parked.After(now) {
		return text + ", parked until " + p.Parked.Local().Format("Jan 2 15:04")
	}
	// A rate is that of this process: what was over before took none of its time.
	if took, own := now.Sub(p.Started), p.Finished-p.Earlier; own > 0 && took > 0 {
		text += fmt.Sprintf(", %.1f/min", float64(own)/took.Minutes())
		if p.Stop == nil {
			text += ", " + rounded(time.Duration(float64(took)/float64(own)*float64(p.Total-p.Finished))) + " left"
		}
	}
	if p.Paused {
		text += ", paused"
	}
	if p.Stop != nil {
		text += ", stopping: " + p.Stop.Reason
	}
	return text
}

// drawTasks writes a line for each task that runs.
func drawTasks(w io.Writer, p fleet.Progress, now time.Time) error {
	for i, r := range p.Running {
		if i == shownTasks {
			_, err := fmt.Fprintf(w, "  … and %d more\n", len(p.Running)-i)
			return err
		}
		again := ""
		if r.Attempts > 1 {
			again = fmt.Sprintf(", attempt %d", r.Attempts)
		}
		if _, err := fmt.Fprintf(w, "  %-20s %-16s %s%s\n", shorten(r.ID, 20), shorten(r.Doing, 16), rounded(now.Sub(r.Since)), again); err != nil {
			return err
		}
	}
	return nil
}

// event shows failures that are tried again, and warnings.
func (p *progress) event(e fleet.Event) {
	switch e.Kind {
	case fleet.EventEnded:
		p.failure(fmt.Sprintf("%s: attempt %d: %s, and another one follows", e.Task, e.Attempt, e.Status), e.Detail)
	case fleet.EventWarning:
		if !p.quiet {
			text := "troupe: warning: "
			if e.Task != "" {
				text += printable(e.Task) + ": "
			}
			p.line(text + shorten(e.Detail, 400))
		}
	case fleet.EventOutage:
		p.line(shorten(e.Detail, 400) + "\nno task is lost by this; Ctrl-C ends the job, and --resume goes on")
	case fleet.EventRecovered:
		p.line(e.Detail)
	case fleet.EventOnAccept:
		if e.Detail != "done" {
			p.line("the command after " + printable(e.Task) + " was accepted: " + shorten(e.Detail, 400))
		}
	case fleet.EventStopped:
		p.line("nothing more starts (" + e.Detail + ")")
	case fleet.EventParked:
		p.line("nothing starts until " + shorten(e.Detail, 400))
	case fleet.EventUnparked:
		p.line("the account works again")
	case fleet.EventAsked:
		p.line(e.Task + " waits for an approval: troupe approvals " + p.out + " (" + shorten(e.Detail, 120) + ")")
	case fleet.EventPaused:
		p.line("paused: nothing more starts until troupe ctl " + p.out + " resume")
	case fleet.EventResumed:
		p.line("the job continues")
	case fleet.EventRequeued:
		p.line(e.Task + " runs again from the beginning")
	case fleet.EventPaced:
		if !p.quiet {
			p.line("tasks at a time: " + e.Detail)
		}
	case fleet.EventSwept:
		if !p.quiet {
			p.line("no process of " + e.Detail + " is left")
		}
	}
}

// failed shows the result of a task that was not accepted, the first one in full.
func (p *progress) failed(what string, r *fleet.TaskResult) {
	p.mu.Lock()
	first, hint := !p.first, ""
	p.first = true
	if r.Denied > 0 && r.Denied >= r.ToolCalls && p.useless != nil {
		if p.useless = append(p.useless, r); len(p.useless) == hintAfter {
			hint, p.useless = ruleHint(p.useless), nil
		}
	}
	p.mu.Unlock()
	if first {
		p.line(what + ": " + whyNotInFull(r))
	} else if !p.quiet {
		p.line(what + ": " + whyNot(r))
	}
	if hint != "" {
		p.line("hint: " + hint)
	}
}

// failure shows the first one in full, and of the others the beginning.
func (p *progress) failure(what, why string) {
	p.mu.Lock()
	first := !p.first
	p.first = true
	p.mu.Unlock()
	if first {
		p.line(what + ": " + printable(why))
	} else if !p.quiet {
		p.line(what + ": " + shorten(why, 120))
	}
}

// result shows a result.
func (p *progress) result(r *fleet.TaskResult) {
	p.mu.Lock()
	p.done[r.ID] = true
	done := len(p.done)
	terminal := p.bars != nil
	p.mu.Unlock()
	what := fmt.Sprintf("[%d/%d] %s %s", done, p.total, r.ID, r.Status)
	switch {
	case r.Earlier:
	case !r.OK():
		p.failed(what, r)
	case !p.quiet && !terminal:
		p.line(fmt.Sprintf("%s %s %s", what, rounded(time.Duration(r.Usage.Wall)), spent(r.Usage)))
	}
}

// line writes a line to stderr, above the bar if there is one.
func (p *progress) line(text string) { p.c.say("%s\n", text) }

// end removes what moves.
func (p *progress) end() {
	p.mu.Lock()
	bars := p.bars
	p.mu.Unlock()
	if bars == nil {
		return
	}
	close(p.stop)
	p.ended.Wait()
	p.bar.Abort(true)
	bars.Wait()
	p.c.draw(nil)
	p.mu.Lock()
	p.bars = nil
	p.mu.Unlock()
}

// spent is what was used, in the units that the agent reports.
func spent(u fleet.Usage) string {
	if u.Credits > 0 {
		return shown.Amount(u.Credits) + " credits"
	}
	return "$" + shown.Amount(u.USD)
}

// rounded is a duration as people say it.
func rounded(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute).String()
}

func sortedStatuses(all map[fleet.Status]int) []fleet.Status { return slices.Sorted(maps.Keys(all)) }

// batchWatch turns signals into the end of a job.
type batchWatch struct {
	h    *fleet.Handle
	c    *console
	over chan struct{}

	mu    sync.Mutex
	first os.Signal
}

func (w *batchWatch) watch(signals <-chan os.Signal) {
	for stage := 0; ; {
		select {
		case <-w.over:
			return
		case sig := <-signals:
			w.c.toMargin()
			w.mu.Lock()
			if w.first == nil {
				w.first = sig
			}
			w.mu.Unlock()
			if stage++; sig != os.Interrupt && stage < 2 {
				stage = 2
			}
			switch stage {
			case 1:
				w.c.note("the running tasks end, and no others start; Ctrl-C again interrupts them")
				w.h.Drain()
			case 2:
				w.c.note("interrupting; Ctrl-C again kills the agents")
				w.h.Cancel()
			default:
				w.c.note("killing the agents")
				w.h.Kill()
			}
		}
	}
}

// signal is the one that began the end, or nil.
func (w *batchWatch) signal() os.Signal {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

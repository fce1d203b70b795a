package embedded

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// attempts is what call has done for one answer.
type attempts struct {
	retries int  // after a wait
	silent  int  // at once, as the request was refused
	early   bool // at once, as the answer broke off before it said anything
	limit   int  // of the answer's tokens; 0: the usual one
	cuts    int  // streams that broke off within a block
	whole   bool // the answer is asked for in one piece, since its stream broke off
}

// call makes one call of the model, and repeats it while that may help, as Claude Code
// 2.1.329 does (observed). No tool of an answer that is not whole has run.
func (t *talk) call(l *agent.Lane) (*answer, error) {
	if err := t.makeRoom(l); err != nil {
		return nil, err
	}
	if err := l.MayCall(); err != nil {
		return nil, err
	}
	purpose := "main"
	if t.up != nil {
		purpose = "subagent"
	}
	chosen, err := t.choose(l, l.Strand(), purpose)
	if t.chosen = chosen; err != nil {
		return nil, err
	}
	var done attempts
	for first := true; ; first = false {
		if err := l.MayRepeat(); !first && err != nil { // other agents of the session spend, too
			return nil, err
		}
		began := t.seams.Clock.Now()
		a, err := t.once(l, &done)
		t.inAPI += t.seams.Clock.Now().Sub(began)
		e, ok := errors.AsType[*model.Error](err)
		if err != nil && !a.whole && (!ok || e.Class != model.Invalid) { // a refusal within the stream uses nothing, as observed
			t.lost(l, a, ok && e.Type == "")
		}
		if err == nil {
			t.fallback.overloads = 0
		}
		if err == nil || !ok || l.Err() != nil {
			return a, err
		}
		if a.worth() {
			t.keep(l, a, e)
			if e.Temporary() || e.Class == model.Broken || len(a.uses()) > 0 {
				return a, nil
			}
			return nil, err // what it has said is part of the conversation all the same, as observed
		}
		l.DropMessage()
		from := t.model(l)
		if t.chosen == (choice{}) && t.fallback.changes(e) { // what the host has chosen is not replaced
			t.switched(l, e, from)
			done = attempts{}
			continue
		}
		if done.atOnce(e, a) {
			continue
		}
		if room, stop := t.tooLong(l, e); stop != nil {
			return nil, stop
		} else if room {
			continue
		}
		if done.cut(e, a, t.retries) {
			continue
		}
		if done.retries++; !again(e) || done.retries > t.retries {
			return nil, err
		}
		if err := t.pause(l, e, done.retries); err != nil {
			return nil, err
		}
	}
}

// pause says that a request is repeated, and waits until its time has come.
func (t *talk) pause(l *agent.Lane, e *model.Error, attempt int) error {
	delay := t.delay(e, attempt)
	l.System("api_retry", agent.Object{
		"attempt": attempt, "max_retries": t.retries, "retry_delay_ms": delay.Milliseconds(),
		"error_status": statusOf(e), "error": retryName(e),
	})
	return l.Sleep(delay)
}

// worth reports whether what came of an answer that broke off is kept: a text, or a call.
func (a *answer) worth() bool {
	return len(a.uses()) > 0 || a.visible()
}

// exceeds are the numbers of a refusal because of the limit of the answer.
var exceeds = regexp.MustCompile(`(\d+) \+ (\d+) > (\d+)`)

// atOnce reports whether the request is repeated without a wait, and without a word: with a
// smaller limit, if the provider says so; twice if it was refused, once if there is no such
// model; once if the answer broke off before it began. The last two ask for an answer in one piece.
func (d *attempts) atOnce(e *model.Error, a *answer) bool {
	if n := exceeds.FindStringSubmatch(e.Message); n != nil && d.limit == 0 {
		input, _ := strconv.Atoi(n[1]) // digits
		window, _ := strconv.Atoi(n[3])
		d.limit = max(window-input-1000, 0)
		return d.limit > 0
	}
	switch {
	case e.Class == model.Invalid && (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) && d.silent < 2,
		e.Status == http.StatusNotFound && d.silent < 1:
		d.silent++
		d.whole = e.Status == http.StatusNotFound
		return true
	case (e.Started || e.Class == model.Broken) && e.Class != model.Invalid && (e.Temporary() || e.Class == model.Broken) && !a.inside && !d.early:
		d.early, d.whole = true, true
		return true
	}
	return false
}

// cut reports whether the request is repeated at once since its stream broke off within a block, for
// the second time, or the first if nothing is repeated: in one piece.
func (d *attempts) cut(e *model.Error, a *answer, retries int) bool {
	if !a.inside || !again(e) || d.whole {
		return false
	}
	d.cuts++
	d.whole = d.cuts > min(1, retries)
	return d.whole
}

// again reports whether the request is repeated after a wait.
func again(e *model.Error) bool {
	return e.RetryAfter <= maxWait && (e.Temporary() || e.Class == model.Auth && e.Status == http.StatusUnauthorized && !e.Final)
}

// maxWhole limits an answer that is asked for in one piece, as observed.
const maxWhole = 64000

// shape changes a request as the ones before it want it.
func (d *attempts) shape(r *model.Request) {
	if d.limit > 0 {
		r.MaxTokens = d.limit
	}
	if d.whole {
		r.Whole, r.MaxTokens = true, min(r.MaxTokens, maxWhole)
	}
}

// maxWait is the longest wait that a provider may ask for: a longer one ends the turn at once.
const maxWait = 60 * time.Second

// once makes one request. Frames of the answer are written when it is whole, so a stream that
// breaks off is not seen; only partial messages are written as they come. With an error it
// returns what has come.
func (t *talk) once(l *agent.Lane, done *attempts) (*answer, error) {
	r, err := t.request(l)
	if err != nil {
		return &answer{}, err
	}
	done.shape(r)
	if err := t.priced(r.Model); err != nil { // the model has been changed
		return &answer{}, err
	}
	var a answer
	sent := t.seams.Clock.Now()
	if t.first.sent.IsZero() {
		t.first.sent = sent
	}
	last := sent // when the event before came
	for batch, err := range t.stream(l, r) {
		if err != nil && a.whole {
			return &a, afterWhole(l, &a, err)
		}
		if err != nil {
			t.interrupted(l, &a)
			return &a, err
		}
		for _, e := range batch {
			switch e.Kind {
			case model.Start:
				a.id, a.request, a.usage, a.model = cmp.Or(e.ID, l.UUID()), e.RequestID, e.Usage, e.Model
				last = t.seams.Clock.Now()
				if t.first.event.IsZero() || t.first.unsaid && !r.Whole { // a stream behind it says it, as observed
					t.first.event, t.first.usage, t.first.unsaid = last, e.Usage, r.Whole && done.cuts == 0
				}
				l.OpenMessage(agent.ModelMessage{
					ID: a.id, RequestID: e.RequestID, Model: cmp.Or(e.Model, r.Model), Usage: startUsage(&e.Usage), TTFT: last.Sub(sent),
				})
			case model.Done:
				now := t.seams.Clock.Now()
				if e.Block.Kind == model.ToolUse {
					e.Block.Input = t.said(e.Block)
				}
				a.blocks, a.took = append(a.blocks, *e.Block), append(a.took, now.Sub(last))
				last = now
			case model.Stop:
				a.stop, a.whole = e.StopReason, true
			case model.Cut:
				a.half, a.inside = e.Block, true
			case model.Waits:
				t.waits(l, e)
			case model.Delta:
			}
			if e.Raw != nil {
				l.Partial(e.Raw)
			}
			if e.Kind == model.Stop {
				a.late = r.Whole && done.early && done.cuts == 0
				if a.piece = r.Whole; r.Whole { // its frames say how it ended, as observed
					l.OpenMessage(agent.ModelMessage{
						ID: a.id, RequestID: a.request, Model: cmp.Or(a.model, r.Model), Usage: usageOf(&e.Usage), More: agent.Object{"stop_reason": a.stop},
					})
				}
				t.show(l, &a, e)
			}
		}
	}
	return &a, nil
}

// waits says that the request waits for a batch, so that the session is not taken for one that
// stands still. A sub-agent's is a call of a tool, which may take long. The log has where the shell
// is, for a later life that makes the same request.
func (t *talk) waits(l *agent.Lane, e *model.Event) {
	if t.up == nil {
		if dir := t.hands.dir(); dir != cmp.Or(t.log.shell, t.hands.root) {
			l.Attach(shellDir, agent.Object{"dir": dir})
		}
		l.System("request_deferred", agent.Object{"batch": e.Batch, "within_ms": e.Within.Milliseconds()})
	}
}

// stream makes a request, and gives its events.
func (t *talk) stream(l *agent.Lane, r *model.Request) iter.Seq2[[]*model.Event, error] {
	from := t.from(t.chosen)
	return agent.Receive(l.Strand(), maxQueued, func(ctx context.Context, emit func(*model.Event) bool) error {
		return from.Stream(ctx, r, emit)
	})
}

// afterWhole is what an error means that came behind a whole answer, which was shown. One of the
// endpoint is of no matter; of an interrupt the results of the calls say that it was there.
func afterWhole(l *agent.Lane, a *answer, err error) error {
	if _, late := errors.AsType[*model.Error](err); late || l.Err() != nil && len(a.uses()) > 0 {
		return nil
	}
	return err
}

// show writes the frames of a whole answer. One that meant to call a tool, and calls none, is
// not part of the conversation, as observed.
func (t *talk) show(l *agent.Lane, a *answer, e *model.Event) {
	t.blocks(l, a)
	cost := t.count(t.model(l), &e.Usage)
	if a.stop == "tool_use" && len(a.uses()) == 0 {
		t.retracted = l.ForgetBlocks()
	}
	l.CloseMessage(a.stop, usageOf(&e.Usage), cost)
}

// blocks writes the frames of an answer's blocks.
func (t *talk) blocks(l *agent.Lane, a *answer) {
	for i := range a.blocks {
		if b := &a.blocks[i]; b.Kind == model.Text && strings.TrimSpace(b.Text) == "" {
			continue // there is nothing to see, as observed
		}
		var more agent.Object
		if a.blocks[i].Kind == model.Thinking && !a.piece {
			more = agent.Object{"thinking_duration_ms": a.took[i].Milliseconds()}
		}
		if len(t.retracted) > 0 {
			if more == nil {
				more = agent.Object{}
			}
			more["supersedes"], t.retracted = t.retracted, nil
		}
		l.Block(frameOf(&a.blocks[i]), more)
	}
	if t.first.frame.IsZero() {
		t.first.frame, t.first.late = t.seams.Clock.Now(), a.late
	}
}

// keep writes the frames of what came of an answer before it broke off.
func (t *talk) keep(l *agent.Lane, a *answer, e *model.Error) {
	a.broken = e
	t.blocks(l, a)
	l.CloseMessage("", usageOf(&model.Usage{}), 0)
}

// interrupted writes what an answer had said when the host interrupted it: the model reads it
// later. Calls of it have not run, and are not part of the conversation.
func (t *talk) interrupted(l *agent.Lane, a *answer) {
	if l.Err() == nil || a.id == "" {
		return
	}
	if a.inside {
		usage := usageOf(&a.usage)
		for _, name := range []string{"service_tier", "speed", "inference_geo", "cache_creation"} {
			delete(usage, name)
		}
		l.Abandon(len(a.blocks), usage)
	}
	said := slices.DeleteFunc(slices.Clone(a.blocks), func(b model.Block) bool { return b.Kind != model.Text })
	for i := range said {
		l.Block(frameOf(&said[i]), nil)
	}
	if a.half != nil && a.half.Kind == model.Text && a.half.Text != "" {
		l.Block(frameOf(a.half), agent.Object{"aborted": true})
	}
}

// request is the next request of the conversation.
func (t *talk) request(l *agent.Lane) (*model.Request, error) {
	if err := t.prompted(l); err != nil {
		return nil, err
	}
	return &model.Request{
		Model: t.model(l), System: t.system, Tools: t.toolList(l), Messages: t.log.conversation(), MaxTokens: t.maxTokens(l),
		Cache: true, User: t.user(l), Raw: l.Streams(), Effort: t.thinks(t.model(l)), ThinkingTokens: t.thinking,
	}, nil
}

// prompted makes the system prompt, once.
func (t *talk) prompted(l *agent.Lane) error {
	if t.system != nil {
		return nil
	}
	system, err := t.systemPrompt(l)
	if err != nil {
		return err
	}
	t.system = append([]string{}, system...) // not nil
	return nil
}

// user names the conversation for the endpoint's caches.
func (t *talk) user(l *agent.Lane) string {
	if id := l.AgentID(); id != "" {
		return l.SessionID() + "-" + id
	}
	return l.SessionID()
}

// thinks is how much the model thinks: as the options say, or its profile; "": it does not
// say.
func (t *talk) thinks(name string) string {
	return cmp.Or(t.effort, t.cfg.Profiles.Model(name).Effort)
}

// maxTokens limits an answer.
func (t *talk) maxTokens(l *agent.Lane) int {
	return cmp.Or(t.cfg.MaxTokens, t.cfg.Profiles.Model(t.model(l)).MaxOutput, 8192)
}

// delay is how long to wait before the next attempt: what the provider asks for, and up to a
// fifth more, or half a second that doubles, and up to a quarter more.
func (t *talk) delay(e *model.Error, attempt int) time.Duration {
	d := min(500*time.Millisecond<<min(attempt-1, 10), 32*time.Second)
	if e.RetryAfter > d {
		return e.RetryAfter + time.Duration(t.rng.Int64N(max(int64(e.RetryAfter)/5, 1)))
	}
	return d + time.Duration(t.rng.Int64N(int64(d)/4))
}

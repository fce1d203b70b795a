package embedded

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// Texts that the loop says to the model, as Claude Code 2.1.329 does (observed).
const (
	cutText   = "Output token limit hit. Resume directly — no apology, no recap of what you were doing. Pick up mid-thought if that is where the cut happened. Break remaining work into smaller pieces."
	emptyText = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"
	noCall    = "The previous response failed to produce a valid tool call. Please retry the tool call now."
)

const (
	maxCut    = 3   // answers in a row that end at the limit of tokens
	maxCalls  = 500 // calls of the model in a turn, if MaxTurns is not set
	maxQueued = 1024
)

// errTooManyCalls ends a turn that does not end by itself.
var errTooManyCalls = errors.New("the turn made 500 calls of the model; set MaxTurns for more, or less")

// turn plays a turn: calls of the model, and of its tools, until it wants no more.
func (t *talk) turn(turn *agent.Turn) error {
	defer t.rest()
	t.begin(turn)
	return t.loop(turn)
}

// goOn continues a turn whose end a Stop hook has blocked. The engine has said why.
func (t *talk) goOn(turn *agent.Turn, _ string) error {
	defer t.rest()
	return t.loop(turn)
}

// rest drops what a session that is idle does not need.
func (t *talk) rest() {
	t.gates, t.hands.reads = nil, nil
	t.hands.hide(nil)
	t.log.endAnswer() // it is smaller when it is encoded
}

// begin begins the count of a turn.
func (t *talk) begin(turn *agent.Turn) {
	if t.turnOf != turn {
		t.turnOf, t.began, t.inAPI, t.spent, t.first = turn, t.seams.Clock.Now(), 0, model.Usage{}, firsts{}
	}
}

func text(s string) model.Block { return model.Block{Kind: model.Text, Text: s} }

// loop calls the model, and what it calls, until an answer calls nothing.
func (t *talk) loop(turn *agent.Turn) error {
	cut, nudged := 0, false
	for calls := 0; ; calls++ {
		if calls == maxCalls {
			return errTooManyCalls
		}
		a, err := t.call(turn.Lane)
		if err != nil {
			return t.failed(turn, err)
		}
		uses := a.uses()
		if len(uses) > 0 {
			cut = 0
			if err := t.useTools(turn, uses); err != nil {
				return err
			}
			continue
		}
		more := ""
		switch visible := a.visible(); {
		case a.stop == "tool_use":
			more = noCall
		case a.stop == "max_tokens" || a.stop == "model_context_window_exceeded":
			if cut++; cut > maxCut {
				return t.failed(turn, &model.Error{Class: model.Invalid, RetryAfter: -1, Message: "the answer was cut off at the limit of tokens, again and again"})
			}
			more = cutText
		case a.stop == "refusal":
			return t.failed(turn, &model.Error{Class: model.Invalid, RetryAfter: -1, Type: "refusal", Message: "the model has refused to answer"})
		case !visible && !nudged:
			more, nudged = emptyText, true
		}
		if more == "" {
			return nil
		}
		turn.UserText(more, agent.Object{"isSynthetic": true})
	}
}

// answer is a whole answer of the model.
type answer struct {
	blocks []model.Block
	took   []time.Duration // of each block, as far as its events tell
	stop   string
}

// uses are the calls of tools.
func (a *answer) uses() (list []*model.Block) {
	for i := range a.blocks {
		if a.blocks[i].Kind == model.ToolUse {
			list = append(list, &a.blocks[i])
		}
	}
	return list
}

// visible reports whether there is a text that is not white space.
func (a *answer) visible() bool {
	for i := range a.blocks {
		if a.blocks[i].Kind == model.Text && strings.TrimSpace(a.blocks[i].Text) != "" {
			return true
		}
	}
	return false
}

// call makes one call of the model, and repeats it while that may help. A request is repeated
// as a whole: what a cut stream had said was not shown, and no tool of it has run.
func (t *talk) call(l *agent.Lane) (*answer, error) {
	for attempt := 1; ; attempt++ {
		if err := l.MayCall(); err != nil {
			return nil, err
		}
		began := t.seams.Clock.Now()
		a, err := t.once(l)
		t.inAPI += t.seams.Clock.Now().Sub(began)
		if err == nil {
			return a, nil
		}
		l.DropMessage()
		e, ok := errors.AsType[*model.Error](err)
		if !ok || l.Err() != nil || !again(e) || attempt > t.cfg.Retries {
			return nil, err
		}
		delay := t.delay(e, attempt)
		l.System("api_retry", agent.Object{
			"attempt": attempt, "max_retries": t.cfg.Retries, "retry_delay_ms": delay.Milliseconds(),
			"error_status": statusOf(e), "error": nameOf(e),
		})
		if err := l.Sleep(delay); err != nil {
			return nil, err
		}
	}
}

// once makes one request. Frames of the answer are written when it is whole, so a stream that
// breaks off is never seen; only partial messages are written as they come.
func (t *talk) once(l *agent.Lane) (*answer, error) {
	r := t.request(l)
	if t.limited && t.cfg.Profiles.Model(r.Model).Price == nil { // the model has been changed
		return nil, &noPriceError{r.Model}
	}
	var a answer
	sent := t.seams.Clock.Now()
	if t.first.sent.IsZero() {
		t.first.sent = sent
	}
	last := sent // when the event before came
	events := agent.Receive(l.Strand(), maxQueued, func(ctx context.Context, emit func(*model.Event) bool) error {
		return t.cfg.Model.Stream(ctx, r, emit)
	})
	for batch, err := range events {
		if err != nil {
			return nil, err
		}
		for _, e := range batch {
			switch e.Kind {
			case model.Start:
				last = t.seams.Clock.Now()
				if t.first.event.IsZero() {
					t.first.event, t.first.usage = last, e.Usage
				}
				l.OpenMessage(agent.ModelMessage{
					ID: cmp.Or(e.ID, l.UUID()), RequestID: e.RequestID, Model: cmp.Or(e.Model, r.Model), Usage: startUsage(&e.Usage), TTFT: last.Sub(sent),
				})
			case model.Done:
				now := t.seams.Clock.Now()
				a.blocks, a.took = append(a.blocks, *e.Block), append(a.took, now.Sub(last))
				last = now
			case model.Stop:
				a.stop = e.StopReason
			case model.Delta:
			}
			if e.Raw != nil {
				l.Partial(e.Raw)
			}
			if e.Kind == model.Stop {
				for i := range a.blocks {
					var more agent.Object
					if a.blocks[i].Kind == model.Thinking {
						more = agent.Object{"thinking_duration_ms": a.took[i].Milliseconds()}
					}
					l.Block(frameOf(&a.blocks[i]), more)
				}
				if t.first.frame.IsZero() {
					t.first.frame = t.seams.Clock.Now()
				}
				l.CloseMessage(e.StopReason, usageOf(&e.Usage), t.count(r.Model, &e.Usage))
			}
		}
	}
	return &a, nil
}

// request is the next request of the conversation.
func (t *talk) request(l *agent.Lane) *model.Request {
	if t.system == nil {
		t.system = systemPrompt(l, t)
	}
	name := l.Model()
	limit := t.cfg.MaxTokens
	if limit == 0 {
		limit = t.cfg.Profiles.Model(name).MaxOutput
	}
	if limit == 0 {
		limit = 8192
	}
	return &model.Request{
		Model: name, System: t.system, Tools: t.toolList(l), Messages: t.log.conversation(), MaxTokens: limit,
		Cache: true, User: l.SessionID(), Raw: l.Streams(), Effort: t.thinks(name), ThinkingTokens: t.thinking,
	}
}

// thinks is how much the model thinks: as the options say, or its profile; "": it does not
// say.
func (t *talk) thinks(name string) string {
	return cmp.Or(t.effort, t.cfg.Profiles.Model(name).Effort)
}

// delay is how long to wait before the next attempt: what the provider asks for, or half a
// second that doubles, and up to a quarter more.
func (t *talk) delay(e *model.Error, attempt int) time.Duration {
	d := min(500*time.Millisecond<<min(attempt-1, 10), 32*time.Second)
	d += time.Duration(t.rng.Int64N(int64(d) / 4))
	return max(d, e.RetryAfter)
}

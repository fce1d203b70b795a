package embedded

import (
	"fmt"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// Texts that the loop says to the model, as Claude Code 2.1.329 does (observed).
const (
	cutText   = "Output token limit hit. Resume directly — no apology, no recap of what you were doing. Pick up mid-thought if that is where the cut happened. Break remaining work into smaller pieces."
	emptyText = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"
	brokeText = "Your response above was cut off mid-stream. Resume directly from where it stops — no apology, no recap. If none of it survived, answer the request from the start."
	noCall    = "The previous response failed to produce a valid tool call. Please retry the tool call now."
	flagged   = "Your response above was stopped by a safety classifier — this is not a tool or API error. The rest of it was withheld, and tool calls in it that had not finished did not run. Do not produce that content again, even reworded."
)

const (
	maxCut    = 3   // answers in a row that end at the limit of tokens
	maxCalls  = 500 // calls of the model in a turn, if MaxTurns is not set
	maxQueued = 1024
)

// tooManyCalls ends a turn, or a sub-agent, that does not end by itself: it has their number.
type tooManyCalls int

func (n tooManyCalls) Error() string {
	return fmt.Sprintf("the turn made %d calls of the model; set MaxTurns for more, or less", int(n))
}

// turn plays a turn: calls of the model, and of its tools, until it wants no more.
func (t *talk) turn(turn *agent.Turn) error {
	defer t.rest(turn)
	t.begin(turn)
	if err := t.needsOutput(turn.Lane); err != nil {
		return err
	}
	if err := t.checkpoint(turn); err != nil {
		return t.failed(turn.Lane, err)
	}
	if instructions, is := turn.Compacts(); is {
		return t.command(turn, instructions)
	}
	if !turn.Continues() {
		t.remindOfDate(turn.Lane)
		t.remindOfMove(turn.Lane)
	} else if !t.hands.goBack(t.log.shell) { // else the request is the one that was made before, to the byte
		t.remindOfMove(turn.Lane)
	}
	t.remindOfPlan(turn.Lane)
	return t.loop(turn.Lane)
}

// goOn continues a turn whose end a Stop hook has blocked. The engine has said why.
func (t *talk) goOn(turn *agent.Turn, _ string) error {
	defer t.rest(turn)
	if err := t.works(turn); err != nil {
		return t.failed(turn.Lane, err)
	}
	return t.loop(turn.Lane)
}

// rest drops what a session that is idle does not need, and notes in the log which files the
// model knows.
func (t *talk) rest(turn *agent.Turn) {
	if files := t.hands.noted(); len(files) > 0 && t.log.stores() {
		turn.Attach(knownFiles, agent.Object{"files": files})
	}
	if t.points != nil {
		t.points.working = false
	}
	t.gates, t.hands.reads = nil, nil
	t.hands.hide(nil, nil)
	t.log.endAnswer() // it is smaller when it is encoded
}

// begin begins the count of a turn.
func (t *talk) begin(turn *agent.Turn) {
	if t.turnOf != turn {
		t.turnOf, t.began, t.inAPI, t.spent, t.first, t.stops = turn, t.seams.Clock.Now(), 0, model.Usage{}, firsts{}, 0
		t.calls, t.guard, t.retracted, t.listed = 0, guard{}, nil, false
		t.loaded, t.output, t.fallback = nil, shaped{}, t.fallback.fresh()
		t.checking = checking{changed: t.checking.changed} // an interrupted turn may have left changes
	}
}

func text(s string) model.Block { return model.Block{Kind: model.Text, Text: s} }

// nudges count what the loop has had to say in a row, or in the turn.
type nudges struct {
	cut     int  // answers in a row that ended at the limit of tokens
	broken  int  // answers in a row that broke off
	empty   bool // it has asked for something to see
	flagged bool // it has continued after a refusal
}

// loop calls the model, and what it calls, until an answer calls nothing.
func (t *talk) loop(l *agent.Lane) error {
	var n nudges
	for {
		if t.calls == t.most() && !t.counted {
			return tooManyCalls(t.calls)
		}
		t.calls++
		a, err := t.call(l)
		if err != nil {
			return t.failed(l, err)
		}
		if a.broken == nil {
			n.broken = 0
		} else if n.broken++; n.broken > t.retries {
			return t.failed(l, a.broken)
		}
		if uses := a.uses(); len(uses) > 0 {
			if a.broken != nil {
				t.apology(l, a.broken)
			}
			n.cut = 0
			err := t.useTools(l, uses)
			if err == nil {
				err = t.afterTools(l, uses)
			}
			if err != nil {
				return err
			}
			given := t.output.given
			done, err := t.gave()
			if given && err == nil {
				more, err := t.checked(l)
				if err != nil {
					return err
				}
				if done = more == ""; !done {
					l.UserText(more, agent.Object{"isSynthetic": true})
				}
			}
			if done || err != nil {
				return err
			}
			continue
		}
		more, err := t.nudge(l, a, &n)
		if err != nil || more == "" {
			return err
		}
		about := agent.Object{"isSynthetic": true}
		if a.stop == "refusal" {
			about["refused_message_id"] = a.id
		}
		if len(t.retracted) > 0 {
			about["retracted_message_uuids"] = t.retracted
		}
		l.UserText(more, about)
	}
}

// nudge is the text for the model after an answer that calls nothing; "": it is the last one.
func (t *talk) nudge(l *agent.Lane, a *answer, n *nudges) (string, error) {
	switch {
	case a.broken != nil:
		return brokeText, nil //nolint:nilerr // the model is asked to continue
	case a.stop == "tool_use":
		return noCall, nil
	case a.stop == "max_tokens" || a.stop == "model_context_window_exceeded":
		if n.cut++; n.cut > maxCut {
			return "", t.failed(l, &tooLongError{t.maxTokens(l)})
		}
		return cutText, nil
	case a.stop == "refusal" && n.flagged:
		return "", t.refused(l, a)
	case a.stop == "refusal":
		n.flagged = true
		t.stops++
		l.System("informational", agent.Object{
			"content": "The model's safeguards stopped the response above · continuing once with that noted", "level": "notice",
		})
		return flagged, nil
	case !a.visible() && !n.empty:
		n.empty = true
		return emptyText, nil
	}
	if more := t.asksOutput(l); more != "" {
		return more, nil
	}
	return t.checked(l)
}

// answer is a whole answer of the model.
type answer struct {
	id     string
	model  string      // as the endpoint calls it; "": it did not say
	usage  model.Usage // when it began
	blocks []model.Block
	half   *model.Block    // that it broke off in; nil: none
	took   []time.Duration // of each block, as far as its events tell

	request string // the provider's id of the request; "": unknown
	stop    string
	whole   bool         // it was shown; nothing of it follows
	piece   bool         // it came in one piece
	late    bool         // in one piece, behind a stream that had said nothing of it
	broken  *model.Error // it broke off behind blocks; nil if it is whole
	inside  bool         // it broke off, and a block had begun
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

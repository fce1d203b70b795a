package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

const (
	reserved   = 20_000 // tokens of the window that are kept for an answer, at most
	margin     = 13_000 // and of what is kept free, at most (both as observed on Claude Code 2.1.329)
	maxUseless = 3      // compactions in a row that have failed, or have not helped, are the last ones
	maxNamed   = 100    // files that a summary names
)

// tooFew is why a conversation of one question is not compacted, as Claude Code says it
// (observed on 2.1.329).
const tooFew = "too_few_groups"

// window is how many tokens a conversation may have; 0: not known.
func (t *talk) window(name string) int {
	w := cmp.Or(t.cfg.Window, t.cfg.Profiles.Model(name).Window)
	if n, err := strconv.Atoi(t.hands.getenv("CLAUDE_CODE_AUTO_COMPACT_WINDOW")); err == nil && n > 0 {
		w = n
	}
	if t.kind != nil && t.kind.window > 0 && (w == 0 || t.kind.window < w) {
		w = t.kind.window
	}
	return w
}

// full is how many tokens a conversation has when it is compacted; 0: it is not.
func (t *talk) full(l *agent.Lane) int {
	w := t.window(t.model(l))
	if w <= 0 || t.useless >= maxUseless || t.hands.switchedOn("DISABLE_AUTO_COMPACT") || t.hands.switchedOn("DISABLE_COMPACT") {
		return 0
	}
	return w - min(t.maxTokens(l), reserved, w/4) - min(margin, w/10)
}

// makeRoom compacts a conversation that has come near the end of the model's window. The turn
// continues also if that fails.
func (t *talk) makeRoom(l *agent.Lane) error {
	full := t.full(l)
	if full == 0 || t.tokens() < full {
		return nil
	}
	if err := l.MaySpend(); err != nil {
		return err
	}
	if t.leaveOut(l) && t.tokens() < full {
		return nil
	}
	err := t.compact(l, false, "")
	if l.Err() != nil {
		return l.Err()
	}
	if errors.As(err, new(*noPriceError)) { // the person has to change something
		return err
	}
	if t.tokens() >= full || err != nil {
		t.useless++
	} else {
		t.useless = 0
	}
	return nil // what the call of the model says counts
}

// tooLong makes room after the endpoint has said that a request is too long, and reports
// whether it is worth repeating.
func (t *talk) tooLong(l *agent.Lane, e *model.Error) (again bool, err error) {
	if e.Class != model.TooLong || t.hands.switchedOn("DISABLE_COMPACT") || groups(t.log.older()) == 0 {
		return false, nil
	}
	if err := l.MaySpend(); err != nil {
		return false, err
	}
	if t.leaveOut(l) {
		return true, nil
	}
	if err := t.compact(l, false, ""); l.Err() != nil {
		return false, l.Err()
	} else if errors.As(err, new(*noPriceError)) {
		return false, err
	} else if err != nil {
		return false, nil //nolint:nilerr // the turn ends with the endpoint's error, which came first
	}
	return true, nil
}

// leaveOut puts stubs in place of old results, if that makes room for a while.
func (t *talk) leaveOut(l *agent.Lane) bool {
	list, saved := t.log.old()
	if !t.log.stores() || saved == 0 || saved < t.window(t.model(l))/5 {
		return false
	}
	l.Attach(leftOut, agent.Object{"results": list, "text": t.transcript(l)})
	if t.up != nil {
		return true
	}
	l.System("informational", agent.Object{
		"content": fmt.Sprintf("The conversation is long: %d old results of tools were left out of it (about %d tokens). The session's log has them.", len(list), saved), "level": "notice",
	})
	return true
}

// transcript is the path of the conversation's file.
func (t *talk) transcript(l *agent.Lane) string {
	if id := l.AgentID(); id != "" {
		return filepath.Join(t.log.dir, filepath.FromSlash(l.AgentFile(id)))
	}
	return filepath.Join(t.log.dir, filepath.FromSlash(fileOf(l.Dir(), l.SessionID())))
}

// ownSize are the bytes of a request before the conversation, once there was one.
func (t *talk) ownSize() int {
	bytes := len(t.tools)
	for _, s := range t.system {
		bytes += len(s)
	}
	return bytes
}

// tokens estimates the tokens of the next request.
func (t *talk) tokens() int { return t.log.tokens(t.ownSize()) }

// command compacts the conversation since the user asks for it.
func (t *talk) command(turn *agent.Turn, instructions string) error {
	err := turn.MaySpend()
	if err == nil {
		err = t.compact(turn.Lane, true, instructions)
	}
	switch failed, is := errors.AsType[*agent.CompactError](err); {
	case turn.Err() != nil:
		return turn.Err()
	case is && failed.Reason == tooFew:
		return turn.Finish(agent.Result{Text: agent.Say("Not enough messages to compact."), Local: true})
	case err == nil:
		t.useless = 0
		return turn.Finish(agent.Result{Text: agent.Say(""), Local: true, More: agent.Object{"local_command": "compact"}})
	}
	yes := true
	if _, ok := errors.AsType[*model.Error](err); !ok && !errors.As(err, new(*agent.CompactError)) {
		return err // a limit
	}
	return turn.Finish(agent.Result{Text: agent.Say("Error during compaction: " + err.Error()), IsError: &yes, Local: true})
}

// compact puts a summary in place of the conversation: of all, or of all but its newest part.
func (t *talk) compact(l *agent.Lane, all bool, instructions string) error {
	err := l.Compact(all, instructions, func() (*agent.Compaction, error) {
		of, kept := t.log.older(), t.log.kept()
		if all {
			of, kept = t.log.conversation(), nil
		}
		if groups(of) == 0 {
			return nil, &agent.CompactError{Reason: tooFew}
		}
		said, err := t.summarize(l, of, instructions)
		if err != nil {
			return nil, err
		}
		c := &agent.Compaction{Kept: kept, PreTokens: t.tokens(), More: agent.Object{}}
		c.Summary = t.summary(l, said, !all)
		size := t.ownSize() + len(c.Summary)
		if !all {
			size += weight(t.log.user)
		}
		if !all && t.log.newest() {
			size += len(t.log.messages[len(t.log.messages)-1])
		}
		c.PostTokens = size / bytesPerToken
		c.Dropped = t.log.gone + max(c.PreTokens-c.PostTokens, 0)
		if t.log.stores() {
			c.More["troupeTranscript"] = t.transcript(l)
		}
		return c, nil
	})
	if err == nil {
		t.remindOfPlan(l)
	}
	return err
}

// groups are the answers in a conversation.
func groups(messages [][]byte) (n int) {
	for _, m := range messages {
		if isAnswer(m) {
			n++
		}
	}
	return n
}

func isAnswer(message []byte) bool {
	return strings.HasPrefix(string(message[:min(len(message), 32)]), `{"role":"assistant"`)
}

// sections are what the model writes. Their headings are the same for each summary.
const sections = `This conversation has become too long. You now write the summary that takes its place: whoever goes on with the work knows only the summary, and the newest messages. Answer with text alone. Do not call a tool: it would not run.

Write these sections, each with its heading, and nothing before or behind them. Be exact: keep names, paths, numbers, commands and words of errors as they are.

## Task
What the user wants, in the user's own words where they matter, with all that was added or taken back since, and what the user does not want.

## State
What is done, and how it was checked. What is begun, and where it stands.

## Files
Each file that matters: its path, what was changed or is to be, and the lines of it that are needed to go on.

## Decisions
What was decided or found out, and why, so that it is not done again.

## Errors
What failed, with its words, and what helped.

## Next
The next step, as the user has asked for it. If the task is done, say so.`

// earlier stands in place of what is too long even for a summary, as observed.
const earlier = "[earlier conversation truncated for compaction retry]"

// summarize asks the model for the summary of a conversation. If that is too long even for
// this, its older half is left out, again and again.
func (t *talk) summarize(l *agent.Lane, of [][]byte, instructions string) (string, error) {
	ask := sections
	if instructions != "" {
		ask += "\n\nThe user adds: " + instructions
	}
	encode := func(s string) []byte {
		return t.cfg.Model.Codec().Message(&model.Message{Role: model.User, Blocks: []model.Block{text(s)}})
	}
	var done attempts
	for empty := false; ; {
		a, err := t.aside(l, append(slices.Clip(slices.Clone(of)), encode(ask)), &done)
		e, ok := errors.AsType[*model.Error](err)
		switch {
		case l.Err() != nil:
			return "", l.Err()
		case err == nil:
			if said := summaryIn(a); said != "" {
				return said, nil
			}
			if empty {
				return "", &agent.CompactError{Reason: "the model wrote no summary"}
			}
			empty = true
		case !ok:
			return "", err
		case e.Class == model.TooLong:
			if of = newer(of, encode(earlier)); of == nil {
				return "", err
			}
		case done.atOnce(e, a):
		default:
			if done.retries++; !again(e) || done.retries > t.retries {
				return "", err
			}
			if err := t.pause(l, e, done.retries); err != nil {
				return "", err
			}
		}
	}
}

// newer is the newer half of a conversation, behind a note. It is nil if there is one answer.
func newer(of [][]byte, note []byte) [][]byte {
	at, half := 0, (groups(of)+1)/2
	for i, n := 0, 0; i < len(of); i++ {
		if isAnswer(of[i]) {
			if n == half {
				at = i
			}
			n++
		}
	}
	if at == 0 {
		return nil
	}
	return append([][]byte{note}, of[at:]...)
}

// aside makes a request that is not part of the conversation: nothing of it is shown.
func (t *talk) aside(l *agent.Lane, messages [][]byte, done *attempts) (*answer, error) {
	var a answer
	if err := l.MaySpend(); err != nil {
		return &a, err
	}
	defer func(before choice) { t.chosen = before }(t.chosen)
	var err error
	if t.chosen, err = t.choose(l, l.Strand(), "compact"); err != nil {
		return &a, err
	}
	r, err := t.request(l)
	if err != nil {
		return &a, err
	}
	if err := t.priced(r.Model); err != nil {
		return &a, err
	}
	r.Messages, r.Raw = messages, false
	done.shape(r)
	for batch, err := range t.stream(l, r) {
		if err != nil && a.whole {
			break
		}
		if err != nil {
			e, ok := errors.AsType[*model.Error](err)
			t.lostAside(l, &a, ok && e.Type == "")
			return &a, err
		}
		for _, e := range batch {
			switch e.Kind {
			case model.Start:
				a.id, a.usage = cmp.Or(e.ID, "aside"), e.Usage
			case model.Done:
				a.blocks = append(a.blocks, *e.Block)
			case model.Stop:
				a.stop, a.whole = e.StopReason, true
				l.Spend(t.countAside(r.Model, &e.Usage))
			case model.Cut:
				a.half, a.inside = e.Block, true
			case model.Waits:
				t.waits(l, e)
			case model.Delta:
			}
		}
	}
	return &a, nil
}

var (
	thought = regexp.MustCompile(`(?s)<analysis>.*?</analysis>`)
	wrapped = regexp.MustCompile(`(?s)<summary>(.*)</summary>`)
)

// summaryIn is the summary that an answer has; "": the answer has no text.
func summaryIn(a *answer) string {
	var parts []string
	for i := range a.blocks {
		if a.blocks[i].Kind == model.Text {
			parts = append(parts, a.blocks[i].Text)
		}
	}
	said := thought.ReplaceAllString(strings.Join(parts, "\n"), "")
	if m := wrapped.FindStringSubmatch(said); m != nil {
		said = m[1]
	}
	return strings.TrimSpace(said)
}

// summary is what the model reads in place of the conversation: what it has written itself, and
// what is known for sure. inTurn: something stays behind it.
func (t *talk) summary(l *agent.Lane, said string, inTurn bool) string {
	var b strings.Builder
	b.WriteString("This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion of the conversation.\n\n")
	b.WriteString(said)
	words := t.log.words
	if inTurn {
		words = slices.DeleteFunc(slices.Clone(words), t.log.quotes)
	}
	if len(words) > 0 {
		b.WriteString("\n\n## What the user has said last, word for word\n" + strings.Join(words, "\n\n"))
	}
	if list := t.log.todos.lines(); len(list) > 0 {
		b.WriteString("\n\n## The list of what is to be done\n" + strings.Join(list, "\n"))
	}
	for _, list := range []struct {
		title string
		files []string
	}{{"Files that were written", t.hands.touched(true)}, {"Files that were read", t.hands.touched(false)}} {
		if n := len(list.files); n > maxNamed {
			list.files = append(list.files[:maxNamed], fmt.Sprintf("and %d more", n-maxNamed))
		}
		if len(list.files) > 0 {
			b.WriteString("\n\n## " + list.title + "\n" + strings.Join(list.files, "\n"))
		}
	}
	if t.log.stores() {
		b.WriteString("\n\nThe whole conversation up to here is in " + t.transcript(l) + ", one JSON object in each line. Look there for what you need word for word.")
	}
	if inTurn {
		b.WriteString("\n\nThe newest messages follow as they were. The summary was written without them: what it calls open may be done in them.")
	}
	if inTurn && len(words) > 0 && words[len(words)-1] == t.log.words[len(t.log.words)-1] {
		b.WriteString("\n\nGo on from where it left off, without a word about this summary.")
	}
	return b.String()
}

package embedded

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// consult asks the session's model something that is not part of the conversation, and returns
// what it says. It counts in what the session has used and cost, and as no turn. The error is a
// *model.Error, or why nothing more may be asked.
func (t *talk) consult(l *agent.Lane, s *agent.Strand, blocks []model.Block) (string, error) {
	chosen, err := t.choose(l, s, "web_fetch")
	if err != nil {
		return "", err
	}
	name := cmp.Or(chosen.model, t.unchosen(l))
	r := &model.Request{
		Model: name, System: []string{asideSystem}, MaxTokens: t.maxTokens(l), User: l.SessionID(),
		Messages: [][]byte{t.cfg.Model.Codec().Message(&model.Message{Role: model.User, Blocks: blocks})},
		Effort:   t.thinks(name), ThinkingTokens: t.thinking,
	}
	if err := t.priced(r.Model); err != nil {
		return "", err
	}
	for attempt := 1; ; attempt++ {
		if err := l.MayAsk(); err != nil {
			return "", err
		}
		began := t.seams.Clock.Now()
		said, err := t.asked(l, s, t.from(chosen), r)
		t.inAPI += t.seams.Clock.Now().Sub(began)
		refused, ok := errors.AsType[*model.Error](err)
		if err == nil || !ok || attempt > t.retries || !again(refused) {
			return said, err
		}
		if err := s.Sleep(t.delay(refused, attempt)); err != nil {
			return "", err
		}
	}
}

// asked makes one request.
func (t *talk) asked(l *agent.Lane, s *agent.Strand, from model.Model, r *model.Request) (string, error) {
	var said strings.Builder
	var used model.Usage
	failed := error(nil)
	for batch, err := range agent.Receive(s, maxQueued, func(ctx context.Context, emit func(*model.Event) bool) error {
		return from.Stream(ctx, r, emit)
	}) {
		for _, e := range batch {
			switch {
			case e.Kind == model.Done && e.Block.Kind == model.Text:
				said.WriteString(e.Block.Text)
			case e.Kind == model.Start || e.Kind == model.Stop:
				used = e.Usage
			}
		}
		failed = err
	}
	l.Spend(t.count(r.Model, &used)) // also of an answer that broke off, as far as it is known
	return strings.TrimSpace(said.String()), failed
}

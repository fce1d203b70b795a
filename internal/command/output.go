package command

import (
	"encoding/json"
	"iter"

	"github.com/agent-troupe/troupe/sdk"
)

// messages is a stretch of a session's stream.
type messages = iter.Seq2[sdk.Message, error]

// printer is a form of output.
type printer interface {
	// play prints messages as they come. It returns the stream's error, or an
	// outputError.
	play(m messages) error
	// end is called once, after the last message, with how it all went.
	end(o outcome, s *settings) error
}

func newPrinter(form string, c *console, quiet bool) printer {
	switch form {
	case outputJSON:
		return &jsonPrinter{c}
	case outputStream:
		return &streamPrinter{c}
	}
	return &textPrinter{console: c, quiet: quiet}
}

// streamPrinter prints the agent's lines.
type streamPrinter struct{ console *console }

func (p *streamPrinter) play(all messages) error {
	for m, err := range all {
		if err != nil {
			return err
		}
		if m.Raw() == nil {
			continue
		}
		if err := p.console.line(m.Raw()); err != nil {
			return err
		}
	}
	return nil
}

func (p *streamPrinter) end(outcome, *settings) error { return nil }

// jsonPrinter prints one object at the end, whatever happened.
type jsonPrinter struct{ console *console }

func (p *jsonPrinter) play(all messages) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// report is the object of --output json.
type report struct {
	Agent     string          `json:"agent"`
	ExitCode  int             `json:"exit_code"`
	SessionID string          `json:"session_id"`
	Text      string          `json:"text"`             // of the result
	Error     string          `json:"error,omitempty"`  // why ExitCode is not 0
	Result    json.RawMessage `json:"result,omitempty"` // the agent's own line
}

func (p *jsonPrinter) end(o outcome, s *settings) error {
	r := report{Agent: s.agent, ExitCode: o.code()}
	if o.result != nil {
		r.SessionID, r.Text, r.Result = o.result.SessionID, o.result.Text(), o.result.Raw()
	}
	if r.ExitCode != exitOK {
		r.Error = o.why()
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return p.console.line(b)
}

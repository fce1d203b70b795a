package scripted

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent"
)

// The checks find what is well formed and makes no sense.

func oneOf(what, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %s", what, value, strings.Join(allowed, ", "))
}

func needs(what, value string) error {
	if value == "" {
		return fmt.Errorf("%s is missing", what)
	}
	return nil
}

func gateCheck(g agent.Gate) error {
	return oneOf("gate", string(g), string(agent.GateAsk), string(agent.GateAllow))
}

func (s *Script) check() error {
	return errors.Join(
		oneOf("dialect", string(s.Dialect), string(agent.Claude), string(agent.Qoder)),
		oneOf("mcp_handshake", string(s.MCPHandshake), string(agent.HandshakeManifest), string(agent.HandshakeMessages)),
	)
}

func (t *Turn) check() error {
	if _, err := regexp.Compile(t.Match); err != nil {
		return fmt.Errorf("match: %w", err)
	}
	if t.Steps == nil {
		return errors.New("a turn needs steps")
	}
	return nil
}

func (m *Misbehaviour) check() error {
	err := errors.Join(
		oneOf("split", m.Split, "bytes", "runes", "halves"),
		oneOf("newline", m.Newline, "crlf", "blank", "missing"),
		oneOf("initialize.mode", m.Initialize.Mode, "never", "refuse", "twice", "empty"),
	)
	if d := m.Die; d != nil {
		err = errors.Join(err,
			oneOf("die.only", d.Only, "fresh", "resumed"),
			oneOf("die.at", string(d.At), string(agent.BeforeInitResponse), string(agent.AfterInitResponse),
				string(agent.MidAssistant), string(agent.PendingPermission), string(agent.BeforeResult), string(agent.AfterResult)))
		if (d.At == "") == (d.Lines == 0) {
			err = errors.Join(err, errors.New("die: want either at or lines"))
		}
	}
	return err
}

func (s *ToolUse) check() error  { return errors.Join(needs("name", s.Name), gateCheck(s.Gate)) }
func (s *SubAgent) check() error { return needs("prompt", s.Prompt) }
func (s *Hook) check() error     { return needs("event", s.Event) }
func (s *System) check() error   { return needs("subtype", s.Subtype) }
func (s *Answer) check() error   { return needs("id", s.ID) }
func (s *Cancel) check() error   { return needs("id", s.ID) }

func (s *Shell) check() error {
	return errors.Join(needs("command", s.Command), gateCheck(s.Gate))
}

func (s *MCPCall) check() error {
	return errors.Join(needs("server", s.Server), needs("tool", s.Tool), gateCheck(s.Gate))
}

func (s *Request) check() error {
	return errors.Join(needs("subtype", s.Subtype), oneOf("cancel", s.Cancel, "in_flight", "late"))
}

func (s *Flood) check() error {
	if s.Count <= 0 || s.Size < 0 {
		return errors.New("want a positive count, and a size that is not negative")
	}
	return nil
}

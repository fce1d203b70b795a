package actors

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// rules are what the dialect and the options say to the routing.
type rules Core

func (r *rules) core() *Core { return (*Core)(r) }

// KindOf implements [machine.Rules].
func (r *rules) KindOf(subtype string) (kind session.Kind, person bool) {
	return router.KindOf(subtype)
}

// Denial implements [machine.Rules].
func (r *rules) Denial(kind session.Kind, f protocol.Frame, reason string) (response []byte, errText string) {
	return r.core().deps().Denial(kind, f, reason)
}

// Initialize implements [machine.Rules].
func (r *rules) Initialize(int) ([]byte, error) { return r.cfg.Dialect.Initialize(r.core().input()) }

// Initialized implements [machine.Rules].
func (r *rules) Initialized(response []byte) ([]machine.Called, error) {
	in := r.core().input()
	if err := r.cfg.Dialect.CheckInitialize(in, response); err != nil {
		return nil, err
	}
	var calls []machine.Called
	for _, req := range r.cfg.Dialect.AfterInitialize(in) {
		body, err := r.cfg.Dialect.Encode(req)
		if err != nil {
			return nil, err
		}
		calls = append(calls, machine.Called{Subtype: req.Subtype(), Body: body})
	}
	return calls, nil
}

// Keep implements [machine.Rules].
func (r *rules) Keep(response []byte) (kept []byte, capabilities []string) {
	return r.cfg.keep(response)
}

// Shared implements [machine.Rules].
func (r *rules) Shared(list []string) []string { return r.cfg.shared(list) }

// BeforeEOF implements [machine.Rules].
func (r *rules) BeforeEOF(initialized []byte, capabilities []string) ([]machine.Called, error) {
	var calls []machine.Called
	var problems []error
	for _, req := range r.cfg.Dialect.BeforeEOF(initialized) {
		if need := r.cfg.Dialect.Capability(req); need != "" && !slices.Contains(capabilities, need) {
			continue
		}
		body, err := r.cfg.Dialect.Encode(req)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s before the end of stdin failed: %w", req.Subtype(), err))
			continue
		}
		calls = append(calls, machine.Called{Subtype: req.Subtype(), Body: body})
	}
	return calls, errors.Join(problems...)
}

// CheckVersion compares majors. A text that is not a version is accepted, as the
// vendor's SDK does (observed on the Qoder SDK 1.0.39).
func (r *rules) CheckVersion(version string) error {
	want := r.cfg.Dialect.Traits().ProtocolMajor
	major, _, ok := strings.Cut(version, ".")
	isNumber := strings.Trim(major, "0123456789") == "" && major != ""
	if want == "" || !ok || !isNumber || major == want {
		return nil
	}
	return &session.ProtocolVersionError{Backend: r.cfg.Dialect.Name(), Version: version, Major: want}
}

// CheckSession compares the agent's session id with Options.Resume or Options.SessionID,
// and returns the problem if they differ: an agent that starts a new session instead does
// not report it. If Resume is not an id but, for example, a title, the ids cannot be
// compared.
func (r *rules) CheckSession(id string) string {
	o := r.core().input()
	id = machine.Short(id)
	switch same := strings.EqualFold(id, o.Resume); {
	case o.Resume == "" && o.SessionID != "" && !o.Continue && !strings.EqualFold(id, o.SessionID):
		return fmt.Sprintf("option SessionID: the agent calls the session %s, not %s", id, o.SessionID)
	case o.Resume == "" || !isID(o.Resume):
		return ""
	case o.ForkSession && same:
		return fmt.Sprintf("option ForkSession: the agent goes on with session %s itself, not with a copy of it", id)
	case !o.ForkSession && !same:
		return fmt.Sprintf("option Resume: the agent is in session %s, not in %s; what was said there may be missing", id, o.Resume)
	}
	return ""
}

// isID reports whether s has the form of a session's id, a UUID.
func isID(s string) bool {
	return len(s) == 36 && strings.Count(s, "-") == 4 && strings.Trim(s, "0123456789abcdefABCDEF-") == ""
}

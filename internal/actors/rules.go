package actors

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/session"
)

// rules are what the dialect and the options say to the routing. Initialize and
// Initialized are for one process: the options have served then.
type rules struct {
	dialect dialect.Dialect
	hooks   []hooks.Hook
	wanted  wanted
	options *dialect.Input
}

// Initialize implements [machine.Rules].
func (r *rules) Initialize(int) ([]byte, error) { return r.dialect.Initialize(r.options) }

// Initialized implements [machine.Rules].
func (r *rules) Initialized(response []byte) ([]machine.Called, error) {
	if err := r.dialect.CheckInitialize(r.options, response); err != nil {
		return nil, err
	}
	var calls []machine.Called
	for _, req := range r.dialect.AfterInitialize(r.options) {
		body, err := r.dialect.Encode(req)
		if err != nil {
			return nil, err
		}
		calls = append(calls, machine.Called{Subtype: req.Subtype(), Body: body})
	}
	r.options = nil // a copy of the user's, which has served
	return calls, nil
}

// BeforeEOF implements [machine.Rules].
func (r *rules) BeforeEOF(initialized []byte, capabilities []string) ([]machine.Called, error) {
	var calls []machine.Called
	var problems []error
	for _, req := range r.dialect.BeforeEOF(initialized) {
		if need := r.dialect.Capability(req); need != "" && !slices.Contains(capabilities, need) {
			continue
		}
		body, err := r.dialect.Encode(req)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s before the end of stdin failed: %w", req.Subtype(), err))
			continue
		}
		calls = append(calls, machine.Called{Subtype: req.Subtype(), Body: body})
	}
	return calls, errors.Join(problems...)
}

// CheckVersion compares majors. What is no version is let through, as the vendor's
// SDK does (observed on the Qoder SDK 1.0.39).
func (r *rules) CheckVersion(version string) error {
	want := r.dialect.Traits().ProtocolMajor
	major, _, ok := strings.Cut(version, ".")
	isNumber := strings.Trim(major, "0123456789") == "" && major != ""
	if want == "" || !ok || !isNumber || major == want {
		return nil
	}
	return &session.ProtocolVersionError{Backend: r.dialect.Name(), Version: version, Major: want}
}

// CheckSession says what is wrong with the id of a session that was to be
// another's continuation, or to have an id of the user's: an agent that begins
// anew says nothing of it. A Resume that is no id, such as a title, tells
// nothing.
func (r *rules) CheckSession(id string) string {
	o := &r.wanted
	id = machine.Short(id)
	switch same := strings.EqualFold(id, o.resume); {
	case o.resume == "" && o.id != "" && !o.continues && !strings.EqualFold(id, o.id):
		return fmt.Sprintf("option SessionID: the agent calls the session %s, not %s", id, o.id)
	case o.resume == "" || !isID(o.resume):
		return ""
	case o.fork && same:
		return fmt.Sprintf("option ForkSession: the agent goes on with session %s itself, not with a copy of it", id)
	case !o.fork && !same:
		return fmt.Sprintf("option Resume: the agent is in session %s, not in %s; what was said there may be missing", id, o.resume)
	}
	return ""
}

// wanted is what the options say of the agent's session. It is asked about when
// they are gone.
type wanted struct {
	resume, id      string
	continues, fork bool
}

func wantedBy(o *dialect.Input) wanted {
	return wanted{resume: o.Resume, id: o.SessionID, continues: o.Continue, fork: o.ForkSession}
}

// isID reports whether s has the form of a session's id, a UUID.
func isID(s string) bool {
	return len(s) == 36 && strings.Count(s, "-") == 4 && strings.Trim(s, "0123456789abcdefABCDEF-") == ""
}

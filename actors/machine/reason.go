package machine

import (
	"errors"
	"strings"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/session"
)

// ladderStep says which signal Troupe sent the agent, at which step and why; "" if
// it sent none.
func ladderStep(link *Link) string {
	switch {
	case link.Signal == "":
		return ""
	case link.Stage < Terminated: // it was given up
		return link.Signal
	case link.Why == "":
		return link.Stage.String() + ", " + link.Signal
	}
	return link.Stage.String() + ", " + link.Signal + ", because " + link.Why
}

// withTails adds to a missing answer to initialize what the agent wrote instead.
func withTails(in Unusable) error {
	var late *session.TimeoutError
	_, lease := errors.AsType[*session.LeaseError](in.Err)
	if lease || !errors.As(in.Err, &late) {
		return in.Err
	}
	told := *late // others hold the one without
	told.StderrTail, told.StdoutTail = Tail(in.Stderr), Tail(in.Stdout)
	return &told
}

// maxTail is how much of what an agent wrote an error shows, in bytes.
const maxTail = 2048

// Tail is the end of s, cut for an error.
func Tail(s string) string {
	return shown.Tail(strings.TrimSpace(s), maxTail)
}

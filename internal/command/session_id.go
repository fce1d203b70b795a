package command

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/transcript"
)

const (
	// leastPrefix is the length from which the beginning of an id is taken for it.
	leastPrefix = 4
	uuidLength  = 36
	// candidates is how many sessions an ambiguous id lists.
	candidates = 10
)

// isPrefix reports whether id may be the beginning of a UUID, and not all of it.
func isPrefix(id string) bool {
	return len(id) >= leastPrefix && len(id) < uuidLength && regexp.MustCompile(`^[0-9a-fA-F][0-9a-fA-F-]*$`).MatchString(id)
}

// fullID is the id of the one session whose id begins with prefix. Text that cannot begin
// an id, or begins no known one, is returned unchanged: it may be the title of a session,
// and the caller says what is wrong with it.
func fullID(ctx context.Context, all *transcript.Sessions, prefix string) (string, error) {
	if !isPrefix(prefix) {
		return prefix, nil
	}
	list, err := all.List(ctx, transcript.ListOptions{})
	if err != nil {
		return "", err
	}
	var found []*transcript.Info
	for i := range list {
		if strings.HasPrefix(list[i].SessionID, strings.ToLower(prefix)) {
			found = append(found, &list[i])
		}
	}
	switch len(found) {
	case 0:
		return prefix, nil
	case 1:
		return found[0].SessionID, nil
	}
	var b strings.Builder
	for _, info := range found[:min(len(found), candidates)] {
		b.WriteString("\n" + sessionLine(info))
	}
	if more := len(found) - candidates; more > 0 {
		fmt.Fprintf(&b, "\nand %s", shown.Count(more, "more session"))
	}
	return "", &usageError{fmt.Sprintf("%d sessions have an id that begins with %s; write more of it:%s", len(found), prefix, b.String()), ""}
}

// completeResume completes the id of --resume, among the sessions of the directory that the
// agent will work in.
func (s *settings) completeResume(ctx context.Context) error {
	if _, played := s.opts.Backend.(*scripted.Agent); played || !isPrefix(s.opts.Resume) || s.inCloud() || s.isACP() {
		return nil
	}
	all, err := s.sessionsHere()
	if err != nil {
		return nil //nolint:nilerr // the id stays as it is, and the agent says what is wrong with its directory
	}
	id, err := fullID(ctx, all, s.opts.Resume)
	if err == nil {
		s.opts.Resume = id
	}
	return err
}

// sessionsHere are the sessions of the directory that the agent will work in.
func (s *settings) sessionsHere() (*transcript.Sessions, error) {
	o := s.opts
	dir, err := filepath.Abs(o.Cwd)
	if err != nil {
		return nil, err
	}
	if o.Cwd = dir; s.demo != nil {
		o.Cwd = "" // each of its sessions has its own
	}
	return sdk.Sessions(&o)
}

package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// link is a session with what this package adds to it.
type link struct {
	session *runtime.Session
	dialect dialect.Dialect
	servers *servers
	gated   bool // hooks, a policy or CanUseTool decide about calls
	skips   bool // Options.AllowDangerouslySkipPermissions
}

// closeServersAtEnd is for sessions that end without a Close.
func (l *link) closeServersAtEnd(home *runtime.Runtime) {
	session, servers := l.session, l.servers
	if !servers.unwatched() {
		return
	}
	home.Executor().Go(func() {
		_ = home.Executor().Await(context.Background(), session.Done())
		_ = servers.close(context.Background()) // Client.Close returns the error
	})
}

// checkSettings refuses settings on the way that would switch off the gates of the
// session, or skip all permissions of one that was not started for that, and what the agent
// would drop.
func (l *link) checkSettings(req protocol.HostRequest) error {
	if _, raw := req.(*protocol.UnknownHostRequest); !raw && req.Subtype() != applyFlagSettings {
		return nil
	}
	body, err := l.dialect.Encode(req)
	if err != nil {
		return err
	}
	settings := flagSettings(body)
	if l.gated && l.dialect.Name() == claude.Name && claude.MinimalMode(settings) {
		return &ConfigError{
			Option: "ApplyFlagSettings", Backend: claude.Name,
			Problem: "the settings turn on Claude Code's minimal mode, which calls no hooks: every gate of this session would be open",
			Fix:     "take CLAUDE_CODE_SIMPLE out of env",
		}
	}
	for _, m := range dialect.SettingsModes(settings) {
		if dialect.SkipsPermissions(m.Mode) && !l.skips {
			return &ConfigError{
				Option: "ApplyFlagSettings", Backend: l.dialect.Name(),
				Problem: fmt.Sprintf("%s %s skips every permission check", m.At, m.Mode),
				Fix:     "start the session with AllowDangerouslySkipPermissions if you want that",
			}
		}
	}
	if l.dialect.Name() == claude.Name && len(settings) > 0 {
		return l.dropped(settings)
	}
	return nil
}

// dropped says what the agent would drop of settings on the way, as of those of the options. A key
// that is null takes a setting back.
func (l *link) dropped(settings json.RawMessage) error {
	var keys map[string]json.RawMessage
	if json.Unmarshal(settings, &keys) == nil {
		given := len(keys)
		maps.DeleteFunc(keys, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
		if len(keys) < given {
			var err error
			if settings, err = json.Marshal(keys); err != nil {
				return err
			}
		}
	}
	var in dialect.Input
	in.Settings = settings
	_, err := l.dialect.Validate(&in)
	var problems []error
	for _, e := range session.ConfigErrors(err) {
		if e.Option == "Settings" {
			problems = append(problems, &ConfigError{Option: "ApplyFlagSettings", Backend: e.Backend, Problem: e.Problem, Fix: e.Fix})
		}
	}
	return errors.Join(problems...)
}

const applyFlagSettings = "apply_flag_settings"

// flagSettings are the settings that a request applies, nil if it is another request.
func flagSettings(request []byte) json.RawMessage {
	var sent map[string]json.RawMessage // no struct, whose names would match in any case
	var kind string
	if json.Unmarshal(request, &sent) != nil || json.Unmarshal(sent["subtype"], &kind) != nil || kind != applyFlagSettings {
		return nil
	}
	return sent["settings"]
}

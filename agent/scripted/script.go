package scripted

import (
	"regexp"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
)

// Script is a conversation from the agent's side. The zero value echoes every
// prompt.
type Script struct {
	// Dialect is claude (the default) or qoder.
	Dialect agent.Dialect `yaml:"dialect"`

	Version         string         `yaml:"version"`          // version of the CLI that the agent reports
	ProtocolVersion string         `yaml:"protocol_version"` // qoder only
	SessionID       string         `yaml:"session_id"`       // used if the arguments have no session id
	Model           string         `yaml:"model"`            // used if the arguments have no model
	Capabilities    []string       `yaml:"capabilities"`
	Initialize      map[string]any `yaml:"initialize"` // merged into the initialize response
	Init            map[string]any `yaml:"init"`       // merged into system/init
	CostPerCall     float64        `yaml:"cost_per_call"`
	// MCPHandshake is manifest, handshake, or "": manifest if the host's initialize has
	// one, otherwise handshake.
	MCPHandshake agent.Handshake `yaml:"mcp_handshake"`
	// SessionState turns session_state_changed frames on or off. Absent: they are on if
	// the host's environment asks for them.
	SessionState *bool `yaml:"session_state"`
	// Partials turns stream_event frames on or off. Absent: they are on if the arguments
	// ask for them.
	Partials *bool `yaml:"partials"`

	// Transcript stores the session in files, as Claude Code does, so that a later process
	// can resume it. The files are in CLAUDE_CONFIG_DIR, or HOME/.claude, unless the
	// [Agent] has its own History.
	Transcript bool `yaml:"transcript"`
	// TranscriptLag is how long after its output the agent stores a line of a turn that has
	// no result yet: what is killed loses the last lines. 0: it stores them at once.
	TranscriptLag time.Duration `yaml:"transcript_lag"`

	// Turns answer prompts. A turn with When or Match answers every prompt that fits. Each
	// other turn answers one prompt, in order.
	Turns []Turn `yaml:"turns"`
	// Resumed replaces Turns in a process that was started with --resume or --continue;
	// absent: Turns.
	Resumed []Turn `yaml:"resumed"`
	// Default answers a prompt when no turn is left; absent: the agent repeats the prompt.
	Default Steps `yaml:"default"`
	// OnStopBlock is played when a Stop hook blocks the end of a turn.
	OnStopBlock Steps `yaml:"on_stop_block"`

	Misbehave Misbehaviour `yaml:"misbehave"`
}

// Turn is one turn of a script.
type Turn struct {
	When  string `yaml:"when"`  // text that the prompt must contain
	Match string `yaml:"match"` // regular expression that the prompt must match
	Steps Steps  `yaml:"steps"`
}

func (t Turn) conditional() bool { return t.When != "" || t.Match != "" }

func (t Turn) fits(prompt string) bool {
	if t.When != "" && !strings.Contains(prompt, t.When) {
		return false
	}
	if t.Match == "" {
		return true
	}
	re, err := regexp.Compile(t.Match)
	return err == nil && re.MatchString(prompt)
}

// choose picks the steps that answer prompt in this life.
func (s *Script) choose(r *run, prompt string) Steps {
	turns := s.Turns
	if r.resumed && s.Resumed != nil {
		turns = s.Resumed
	}
	for _, t := range turns {
		if t.conditional() && t.fits(prompt) {
			return t.Steps
		}
	}
	for r.next < len(turns) {
		r.next++
		if t := turns[r.next-1]; !t.conditional() {
			return t.Steps
		}
	}
	if s.Default != nil {
		return s.Default
	}
	return Steps{Text("${prompt}")}
}

func toSwitch(b *bool) agent.Switch {
	switch {
	case b == nil:
		return 0
	case *b:
		return agent.On
	}
	return agent.Off
}

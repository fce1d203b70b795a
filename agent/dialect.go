package agent

// Dialect is the CLI whose protocol the engine uses. The zero value means [Claude].
type Dialect string

// The dialects.
const (
	// Claude is Claude Code 2.1.329, as observed.
	Claude Dialect = "claude"
	// Qoder is qodercli 1.1.52, as far as it was observed. Its control requests were
	// observed. Its turns were not; they follow the messages that its SDK accepts.
	Qoder Dialect = "qoder"
)

// traits is all that the dialects differ in, apart from the documents they
// answer with (documents.go).
type traits struct {
	version         string
	protocolVersion string
	model           string
	codeKey         string // where an error answer keeps its code

	fatalJunk       bool // a line that is not JSON ends the agent
	initEachTurn    bool // system/init opens every turn; else it follows initialize
	needsInitialize bool // a user line before initialize ends the agent
	stateFrames     bool // session_state_changed, for hosts that say they read it
	needsInput      bool // an allow answer must carry updatedInput
	modeReplies     bool // set_model and set_permission_mode answer with the value
	commandEcho     bool // set_model replays the local command's output
}

func (d Dialect) traits() traits {
	if d == Qoder {
		return traits{
			version:         "1.1.52",
			protocolVersion: "1.4.0",
			model:           "auto",
			codeKey:         "code",
			needsInitialize: true,
			needsInput:      true,
		}
	}
	return traits{
		version:      "2.1.329",
		model:        "claude-opus-5-5",
		codeKey:      "error_code",
		fatalJunk:    true,
		initEachTurn: true,
		stateFrames:  true,
		modeReplies:  true,
		commandEcho:  true,
	}
}

package inquiry

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/actors/dispatch"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// DefaultTimeout bounds the callbacks that ask no person.
const DefaultTimeout = time.Minute

// Callbacks are the user's answers. A nil one is answered as the vendors' SDKs
// do without it. Each may be called many times at once; its context ends when
// the agent no longer wants the answer.
type Callbacks struct {
	// Elicitation and UserDialog ask a person, and so have no limit.
	Elicitation session.ElicitationHandler
	UserDialog  session.UserDialogHandler

	JobToken            session.FetchJobToken
	ServiceAccountToken session.FetchServiceAccountToken

	ShouldGenerateMemory session.TurnGate
	ShouldReviewSkills   session.TurnGate
	// MemoryLimit and SkillsLimit bound the two gates. Default: [DefaultTimeout].
	MemoryLimit, SkillsLimit time.Duration

	SessionArtifacts session.ResolveSessionArtifacts
}

// Prepare returns how requests become calls of the callbacks.
func Prepare(d dialect.Dialect, callbacks Callbacks) dispatch.Prepare {
	return (&answers{callbacks: callbacks, dialect: d}).prepare
}

type answers struct {
	callbacks Callbacks
	dialect   dialect.Dialect
}

func (a *answers) prepare(r *dispatch.Request) (dispatch.Job, error) {
	job := dispatch.Job{Name: r.Frame.Subtype}
	req, err := protocol.DecodeAgentRequest(r.Frame)
	if err != nil {
		return job, fmt.Errorf("%s request: %w", r.Frame.Subtype, err)
	}
	c := &a.callbacks
	switch req := req.(type) {
	case *protocol.ElicitationRequest:
		job.Run = elicit(c, req, a.dialect)
	case *protocol.ElicitationPromptRequest:
		job.Run = elicit(c, modern(req), a.dialect)
	case *protocol.UserDialogRequest:
		job.Run = dialog(c, req)
	case *protocol.FetchJobTokenRequest:
		job.Limit = DefaultTimeout
		job.Run = fetch(req, c.JobToken, jobToken())
	case *protocol.FetchServiceAccountTokenRequest:
		job.Limit = DefaultTimeout
		job.Run = fetch(req, c.ServiceAccountToken, serviceAccountToken())
	case *protocol.MemoryShouldGenerateRequest:
		job.Limit, job.SetBy = orDefault(c.MemoryLimit), "Memory"
		job.Run = consult("memory shouldGenerate", c.ShouldGenerateMemory, req.CallbackID, dialect.MemoryCallbackID, &req.Input)
	case *protocol.SkillEvolutionShouldReviewRequest:
		job.Limit, job.SetBy = orDefault(c.SkillsLimit), "Evolution"
		job.Run = consult("skill evolution shouldReview", c.ShouldReviewSkills, req.CallbackID, dialect.EvolutionCallbackID, &req.Input)
	case *protocol.ResolveSessionArtifactsRequest:
		job.Limit = DefaultTimeout
		job.Run = artifacts(c, req)
	default:
		return job, &dispatch.Refusal{
			Text: "Unsupported control request subtype: " + r.Frame.Subtype,
			Err:  fmt.Errorf("%s request: decoded as %T", r.Frame.Subtype, req),
		}
	}
	return job, nil
}

func orDefault(limit time.Duration) time.Duration {
	if limit > 0 {
		return limit
	}
	return DefaultTimeout
}

// Denial is the answer of a request whose callback gave none: a person who could
// not be asked has not agreed, and a gate stays shut.
func Denial(d dialect.Dialect, f protocol.Frame, reason string) (response []byte, errText string) {
	var answer any
	switch f.Subtype {
	case "elicitation", "elicitation_response":
		answer = protocol.ElicitationResult{Action: d.Traits().ElicitationFallback}
	case "request_user_dialog":
		answer = protocol.UserDialogResult{Behavior: protocol.DialogCancelled}
	case "memory_should_generate", "skill_evolution_should_review":
		answer = protocol.ShouldRunReply{Reason: reason}
	default:
		return nil, reason
	}
	response, err := json.Marshal(answer)
	if err != nil {
		return nil, reason
	}
	return response, ""
}

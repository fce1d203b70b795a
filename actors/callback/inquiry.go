package callback

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// InquiryTimeout limits the callbacks that do not ask a person.
const InquiryTimeout = time.Minute

// MemoryLimit returns the time limit of Options.ShouldGenerateMemory. Zero: the options
// do not set it, and [InquiryTimeout] applies.
func MemoryLimit(o *session.Options) time.Duration {
	if m := o.Memory; m != nil && m.Generation != nil && m.Generation.TurnComplete != nil {
		return max(m.Generation.TurnComplete.Timeout, 0)
	}
	return 0
}

// SkillsLimit returns the time limit of Options.ShouldReviewSkills. Zero: the options do
// not set it, and [InquiryTimeout] applies.
func SkillsLimit(o *session.Options) time.Duration {
	if e := o.Evolution; e != nil && e.Skill != nil && e.Skill.Generation != nil && e.Skill.Generation.TurnComplete != nil {
		return max(e.Skill.Generation.TurnComplete.Timeout, 0)
	}
	return 0
}

// PrepareInquiry returns the function that turns requests into calls of the options' callbacks.
// A request whose callback is nil is answered as the vendors' SDKs answer it.
func PrepareInquiry(d dialect.Dialect, o *session.Options) Prepare {
	return (&answers{options: o, dialect: d}).prepare
}

type answers struct {
	options *session.Options
	dialect dialect.Dialect
}

func (a *answers) prepare(r *Request) (Job, error) {
	job := Job{Name: r.Frame.Subtype}
	req, err := protocol.DecodeAgentRequest(*r.Frame)
	if err != nil {
		return job, fmt.Errorf("%s request: %w", r.Frame.Subtype, err)
	}
	o := a.options
	if o.Unattended {
		job.Limit, job.SetBy = o.PersonLimit()
	}
	switch req := req.(type) {
	case *protocol.ElicitationRequest:
		job.Run = elicit(o.OnElicitation, req, a.dialect)
	case *protocol.ElicitationPromptRequest:
		job.Run = elicit(o.OnElicitation, modern(req), a.dialect)
	case *protocol.UserDialogRequest:
		job.Run = dialog(o.OnUserDialog, req)
	case *protocol.FetchJobTokenRequest:
		job.Limit = InquiryTimeout
		job.Run = fetch(req, o.FetchJobToken, jobToken())
	case *protocol.FetchServiceAccountTokenRequest:
		job.Limit = InquiryTimeout
		job.Run = fetch(req, o.FetchServiceAccountToken, serviceAccountToken())
	case *protocol.MemoryShouldGenerateRequest:
		job.Limit, job.SetBy = cmp.Or(MemoryLimit(o), InquiryTimeout), "Memory"
		job.Run = consult("memory shouldGenerate", o.ShouldGenerateMemory, req.CallbackID, dialect.MemoryCallbackID, &req.Input)
	case *protocol.SkillEvolutionShouldReviewRequest:
		job.Limit, job.SetBy = cmp.Or(SkillsLimit(o), InquiryTimeout), "Evolution"
		job.Run = consult("skill evolution shouldReview", o.ShouldReviewSkills, req.CallbackID, dialect.EvolutionCallbackID, &req.Input)
	case *protocol.ResolveSessionArtifactsRequest:
		job.Limit = InquiryTimeout
		job.Run = artifacts(o.ResolveSessionArtifacts, req)
	default:
		return job, &RefusalError{
			Text: "Unsupported control request subtype: " + r.Frame.Subtype,
			Err:  fmt.Errorf("%s request: decoded as %T", r.Frame.Subtype, req),
		}
	}
	return job, nil
}

// InquiryDenial returns the answer to a request whose callback gave no answer: a denial.
func InquiryDenial(d dialect.Dialect, f protocol.Frame, reason string) (response []byte, errText string) {
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

package qoder

import (
	"slices"

	"github.com/agent-troupe/troupe/base/wire"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/session"
)

// Modes of memory and of the evolution of skills.
const (
	modeNative = "native"
	modeCustom = "custom"
)

// turnCompleteWire is session.TurnComplete on the wire, where functions go by their identifiers. Like the forms below it
// has what the SDK fills in, in the SDK's order (observed on the Qoder SDK 1.0.39).
type turnCompleteWire struct {
	Enabled         session.Opt[bool] `json:"enabled,omitzero"`
	ReviewThreshold session.Opt[int]  `json:"reviewThreshold,omitzero"`
	ShouldGenerate  string            `json:"shouldGenerateCallbackId,omitempty"`
	ShouldReview    string            `json:"shouldReviewCallbackId,omitempty"`
	TimeoutMs       float64           `json:"timeoutMs,omitempty"`
	OnGateError     string            `json:"onGateError,omitempty"`
}

type generationWire struct {
	Enabled        session.Opt[bool]    `json:"enabled,omitzero"`
	Roots          []session.MemoryRoot `json:"roots,omitempty"`
	Prompt         string               `json:"prompt,omitempty"`
	MaxSuggestions session.Opt[int]     `json:"maxSuggestions,omitzero"`
	TurnComplete   *turnCompleteWire    `json:"turnComplete,omitempty"`
}

// orTrue is on unless it was said to be off.
func orTrue(o session.Opt[bool]) session.Opt[bool] { return session.Some(o.Or(true)) }

// turnComplete is the wire's form. A callback that was given without the object that names it gets one.
func turnComplete(at *session.TurnComplete, callback turnCompleteWire) *turnCompleteWire {
	if at == nil && callback == (turnCompleteWire{}) {
		return nil
	}
	if at == nil {
		at = &session.TurnComplete{}
	}
	callback.Enabled, callback.ReviewThreshold, callback.OnGateError = orTrue(at.Enabled), at.ReviewThreshold, at.OnGateError
	callback.TimeoutMs = wire.Millis(at.Timeout)
	return &callback
}

// memoryOf is the memory that the options turn on, nil if they turn on none. The
// callback alone turns it on.
func memoryOf(o *dialect.Input) *session.Memory {
	m, decides := o.Memory, o.ShouldGenerateMemory != nil
	switch {
	case m == nil && decides:
		return &session.Memory{}
	case m == nil:
		return nil
	case m.Mode == "" && m.ProjectScope.IsZero() && m.UserScope.IsZero() && m.Generation == nil &&
		m.Consumption == nil && !decides && len(m.Extra) == 0:
		return nil
	}
	return m
}

func memory(o *dialect.Input, req *build.Object) {
	m := memoryOf(o)
	if m == nil {
		return
	}
	doc := struct {
		Requester    string                     `json:"requester"`
		Mode         string                     `json:"mode"`
		ProjectScope session.Opt[bool]          `json:"projectScope,omitzero"`
		UserScope    session.Opt[bool]          `json:"userScope,omitzero"`
		Generation   *generationWire            `json:"generation,omitempty"`
		Consumption  *session.MemoryConsumption `json:"consumption,omitempty"`
	}{Requester: "sdk", Mode: m.Mode, ProjectScope: m.ProjectScope, UserScope: m.UserScope}
	if m.Mode != modeNative {
		doc.Mode = modeCustom
		doc.Generation, doc.Consumption = memoryGeneration(m.Generation, o.ShouldGenerateMemory != nil), memoryConsumption(m.Consumption)
	}
	raw, err := wire.MarshalWith(doc, m.Extra)
	req.SetRaw("memory", raw, err)
}

func memoryGeneration(g *session.MemoryGeneration, hasShouldGenerate bool) *generationWire {
	if g == nil && !hasShouldGenerate {
		return nil
	}
	if g == nil {
		g = &session.MemoryGeneration{}
	}
	var callback turnCompleteWire
	if hasShouldGenerate {
		callback.ShouldGenerate = dialect.MemoryCallbackID
	}
	return &generationWire{Enabled: orTrue(g.Enabled), Roots: g.Roots, Prompt: g.Prompt,
		TurnComplete: turnComplete(g.TurnComplete, callback)}
}

func memoryConsumption(c *session.MemoryConsumption) *session.MemoryConsumption {
	if c == nil {
		return nil
	}
	out := *c
	out.Enabled, out.Files = orTrue(c.Enabled), slices.Clone(c.Files)
	for i := range out.Files {
		out.Files[i].Required = session.Some(out.Files[i].Required.Or(false))
	}
	return &out
}

// skillsOf is the evolution of skills that the options turn on, nil if they turn on
// none. The callback alone turns it on.
func skillsOf(o *dialect.Input) *session.SkillEvolution {
	switch {
	case o.Evolution != nil && o.Evolution.Skill != nil:
		return o.Evolution.Skill
	case o.ShouldReviewSkills != nil:
		return &session.SkillEvolution{}
	}
	return nil
}

func evolution(o *dialect.Input, req *build.Object) {
	s := skillsOf(o)
	if s == nil {
		return
	}
	if s.Generation != nil && !s.Generation.Enabled.Or(true) {
		return
	}
	doc := struct {
		Requester  string          `json:"requester"`
		Mode       string          `json:"mode"`
		Generation *generationWire `json:"generation,omitempty"`
	}{Requester: "sdk", Mode: s.Mode}
	if s.Mode == modeNative {
		if g := s.Generation; g != nil && g.TurnComplete != nil && !g.TurnComplete.ReviewThreshold.IsZero() {
			doc.Generation = &generationWire{TurnComplete: &turnCompleteWire{ReviewThreshold: g.TurnComplete.ReviewThreshold}}
		}
	} else {
		doc.Mode, doc.Generation = modeCustom, skillGeneration(s.Generation, o.ShouldReviewSkills != nil)
	}
	skill, err := wire.MarshalWith(doc, s.Extra)
	req.SetRaw("evolution", slices.Concat([]byte(`{"skill":`), skill, []byte("}")), err)
}

func skillGeneration(g *session.SkillGeneration, hasShouldReview bool) *generationWire {
	if g == nil && !hasShouldReview {
		return nil
	}
	if g == nil {
		g = &session.SkillGeneration{}
	}
	var callback turnCompleteWire
	if hasShouldReview {
		callback.ShouldReview = dialect.EvolutionCallbackID
	}
	return &generationWire{Enabled: orTrue(g.Enabled), Prompt: g.Prompt, MaxSuggestions: g.MaxSuggestions,
		TurnComplete: turnComplete(g.TurnComplete, callback)}
}

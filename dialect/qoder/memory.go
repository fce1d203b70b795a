package qoder

import (
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
)

// turnCompleteWire is dialect.TurnComplete on the wire, where functions go by their identifiers. Its keys and their
// order were observed on the Qoder SDK 1.0.39.
type turnCompleteWire struct {
	Enabled        dialect.Opt[bool] `json:"enabled,omitzero"`
	ShouldGenerate string            `json:"shouldGenerateCallbackId,omitempty"`
	ShouldReview   string            `json:"shouldReviewCallbackId,omitempty"`
	TimeoutMs      int64             `json:"timeoutMs,omitempty"`
}

type generationWire struct {
	Enabled      dialect.Opt[bool] `json:"enabled,omitzero"`
	Prompt       string            `json:"prompt,omitempty"`
	TurnComplete *turnCompleteWire `json:"turnComplete,omitempty"`
}

// generation is the wire's form of a generation. A callback that was given without the object that names it gets one.
func generation(g generationWire, given bool, at *dialect.TurnComplete, name func(*turnCompleteWire)) *generationWire {
	var end turnCompleteWire
	name(&end)
	if at != nil {
		end.Enabled, end.TimeoutMs = at.Enabled, at.Timeout.Milliseconds()
	}
	if at != nil || end != (turnCompleteWire{}) {
		g.TurnComplete = &end
	}
	if !given && g.TurnComplete == nil {
		return nil
	}
	return &g
}

func memory(m *dialect.Memory, req *build.Object) {
	if m == nil || (m.Mode == "" && m.ProjectScope.IsZero() && m.Generation == nil && m.Consumption == nil &&
		!m.HasShouldGenerate && len(m.Extra) == 0) {
		return
	}
	g := m.Generation
	if g == nil {
		g = &dialect.MemoryGeneration{}
	}
	doc := struct {
		Requester    string                     `json:"requester"`
		Mode         string                     `json:"mode,omitempty"`
		ProjectScope dialect.Opt[bool]          `json:"projectScope,omitzero"`
		Generation   *generationWire            `json:"generation,omitempty"`
		Consumption  *dialect.MemoryConsumption `json:"consumption,omitempty"`
	}{
		Requester: "sdk", Mode: m.Mode, ProjectScope: m.ProjectScope, Consumption: m.Consumption,
		Generation: generation(generationWire{Enabled: g.Enabled, Prompt: g.Prompt}, m.Generation != nil, g.TurnComplete,
			func(w *turnCompleteWire) {
				if m.HasShouldGenerate {
					w.ShouldGenerate = dialect.MemoryCallbackID
				}
			}),
	}
	raw, err := dialect.MarshalWith(doc, m.Extra)
	req.SetRaw("memory", raw, err)
}

func evolution(e *dialect.Evolution, req *build.Object) {
	if e == nil || (!e.HasShouldReview && e.Skill == nil) {
		return
	}
	s := e.Skill
	if s == nil {
		s = &dialect.SkillEvolution{}
	}
	g := s.Generation
	if g == nil {
		g = &dialect.SkillGeneration{}
	}
	doc := struct {
		Requester  string          `json:"requester"`
		Mode       string          `json:"mode,omitempty"`
		Generation *generationWire `json:"generation,omitempty"`
	}{
		Requester: "sdk", Mode: s.Mode,
		Generation: generation(generationWire{Enabled: g.Enabled, Prompt: g.Prompt}, s.Generation != nil, g.TurnComplete,
			func(w *turnCompleteWire) {
				if e.HasShouldReview {
					w.ShouldReview = dialect.EvolutionCallbackID
				}
			}),
	}
	skill, err := dialect.MarshalWith(doc, s.Extra)
	req.SetRaw("evolution", slices.Concat([]byte(`{"skill":`), skill, []byte("}")), err)
}

package qoder

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/base/wire"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

const initializeTimeout = 120 * time.Second

// Initialize implements dialect.Dialect. It names its kind twice, the second time at the end, as the SDK does.
func (Dialect) Initialize(o *dialect.Input) (json.RawMessage, error) {
	timeout := cmp.Or(o.InitializeTimeout, initializeTimeout)
	var req build.Object
	req.Set("type", "initialize")
	req.Set("modelPolicyProvider", o.ResolveModel != nil)
	req.Set("supportsCatalogReadyInitialize", true)
	req.Set("supportsAvailableModelsUpdate", true)
	req.Set("supportsCommandsChanged", true)
	req.Set("initializeTimeoutMs", wire.Millis(timeout))
	req.SetIf(len(o.Registrations) > 0, "hooks", build.Hooks(o.Registrations, nil))
	if s := o.SystemPrompt; s.Preset {
		req.SetIf(s.Append != "", "appendSystemPrompt", s.Append)
	} else if len(s.Blocks) > 0 {
		req.Set("systemPrompt", s.Blocks[0])
	}
	req.SetIf(o.ModelRequestPatches != nil, "modelRequestPatches", o.ModelRequestPatches)
	req.SetIf(len(o.Agents) > 0, "agents", o.Agents)
	if !o.Skills.IsDefault() && !o.Skills.IsAll() {
		req.Set("skills", o.Skills)
	}
	req.SetIf(o.PromptSuggestions, "promptSuggestions", true)
	if on, given := o.EnableFileCheckpointing.Value(); given {
		req.Set("enableFileCheckpointing", on)
	}
	memory(o, &req)
	evolution(o, &req)
	req.SetIf(o.ResolveSessionArtifacts != nil, "resolveSessionArtifacts", true)
	sdkServers(o, &req)
	req.Set("subtype", "initialize")
	return req.JSON()
}

// AfterInitialize implements dialect.Dialect.
func (Dialect) AfterInitialize(o *dialect.Input) []protocol.HostRequest {
	var out []protocol.HostRequest
	if o.Proxy != "" && build.URLCredential(o.Proxy) {
		out = append(out, protocol.SetProxyRequest{Proxy: &o.Proxy})
	}
	if active, given := o.PlanMode.Value(); given {
		out = append(out, protocol.SetPlanModeRequest{Active: active})
	}
	if n, given := o.GoalMaxTurns.Value(); given {
		out = append(out, protocol.SetGoalMaxTurnsRequest{MaxTurns: &n})
	}
	return out
}

// BeforeEOF implements dialect.Dialect. The vendor's SDK flushes what the response says is on and was asked for by the
// SDK (observed on the Qoder SDK 1.0.39).
func (Dialect) BeforeEOF(initialize json.RawMessage) []protocol.HostRequest {
	type state struct {
		Enabled   bool   `json:"enabled"`
		Requester string `json:"requester"`
	}
	var memory struct {
		Memory state `json:"memory"`
	}
	var evolution struct {
		Evolution struct {
			Skill state `json:"skill"`
		} `json:"evolution"`
	}
	on := state{Enabled: true, Requester: "sdk"}
	var out []protocol.HostRequest
	if protocol.Unmarshal(initialize, &memory) == nil && memory.Memory == on {
		out = append(out, protocol.FlushMemoryRequest{})
	}
	if protocol.Unmarshal(initialize, &evolution) == nil && evolution.Evolution.Skill == on {
		out = append(out, protocol.FlushSkillEvolutionRequest{})
	}
	return out
}

// forkBarrier is announced by agents that report the lines of a fork before they answer
// initialize. Of another agent the store would get a session that lacks what was forked
// (observed on the Qoder SDK 1.0.39; qodercli 1.1.52 announces it, as read in its program).
const forkBarrier = "session_store_fork_barrier_v1"

// CheckInitialize implements dialect.Dialect.
func (d Dialect) CheckInitialize(o *dialect.Input, response json.RawMessage) error {
	var got struct {
		Capabilities []string `json:"capabilities"`
	}
	_ = protocol.Unmarshal(response, &got) // no list is the same as an empty one
	if o.ForkSession && o.HasSessionStore && !slices.Contains(got.Capabilities, forkBarrier) {
		return &session.UnsupportedCapabilityError{Backend: Name, Capability: forkBarrier, Request: "a fork with a session store"}
	}
	for _, r := range d.AfterInitialize(o) {
		if need := d.Capability(r); need != "" && !slices.Contains(got.Capabilities, need) {
			return &session.UnsupportedCapabilityError{Backend: Name, Capability: need, Request: r.Subtype()}
		}
	}
	return nil
}

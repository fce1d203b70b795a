package router

import (
	"slices"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Deps are the parts of a session that answers need.
type Deps struct {
	Dialect dialect.Dialect
	Options *session.Options
	MCP     *mcp.Bridge
}

// Row describes how a session answers one kind of the agent's requests.
type Row struct {
	Actor string // name of the kind's actor; its parent is callbacks
	// People are the subtypes whose answer may have to wait for a person, Others the other
	// subtypes of the kind.
	People, Others []string
	// Refuses allows a [callback.RefusalError] to answer with an error. A gate must not set
	// it, because an agent may take an error for an allow.
	Refuses bool
	// Denial returns the answer to a request whose callback gave no answer. errText is used
	// if response is nil.
	Denial func(d *Deps, f protocol.Frame, reason string) (response []byte, errText string)
	// Prepare returns the function that turns requests of the kind into jobs.
	Prepare func(d *Deps) callback.Prepare
}

// entries is the registry. A new kind is a constant in package session, an entry here,
// and the package of its behaviour.
var entries = [session.KindOther]Row{ //nolint:gochecknoglobals // only read
	session.KindPermission: {
		Actor: "permission", People: []string{"can_use_tool"},
		Denial: func(d *Deps, f protocol.Frame, reason string) ([]byte, string) {
			return callback.PermissionDenial(d.Dialect, f, reason)
		},
		Prepare: func(d *Deps) callback.Prepare {
			return callback.PreparePermission(d.Dialect, d.Options)
		},
	},
	session.KindHook: {
		Actor: "hooks", Others: []string{"hook_callback"},
		Denial: func(d *Deps, f protocol.Frame, reason string) ([]byte, string) {
			return hooks.Denial(d.Dialect, d.Options.Hooks, f, reason)
		},
		Prepare: func(d *Deps) callback.Prepare { return hooks.Prepare(d.Dialect, d.Options.Hooks) },
	},
	session.KindMCP: {
		Actor: "mcp", Others: []string{"mcp_message"}, Refuses: true,
		Denial:  func(_ *Deps, f protocol.Frame, reason string) ([]byte, string) { return mcp.Denial(f, reason) },
		Prepare: func(d *Deps) callback.Prepare { return mcp.Prepare(d.MCP) },
	},
	session.KindModelPolicy: {
		Actor: "modelpolicy", Others: []string{"get_model_policy"}, Refuses: true,
		Denial: func(_ *Deps, _ protocol.Frame, reason string) ([]byte, string) { return nil, reason },
		Prepare: func(d *Deps) callback.Prepare {
			return callback.PrepareModelPolicy(d.Dialect, d.Options.ResolveModel, d.Options.ResolveModelTimeout)
		},
	},
	session.KindInquiry: {
		Actor: "inquiry", Refuses: true,
		People: []string{"elicitation", "elicitation_response", "request_user_dialog"},
		Others: []string{
			"fetch_job_token", "fetch_service_account_token",
			"memory_should_generate", "skill_evolution_should_review", "resolve_session_artifacts",
		},
		Denial: func(d *Deps, f protocol.Frame, reason string) ([]byte, string) {
			return callback.InquiryDenial(d.Dialect, f, reason)
		},
		Prepare: func(d *Deps) callback.Prepare { return callback.PrepareInquiry(d.Dialect, d.Options) },
	},
}

// Of returns the entry of a kind, which must not be changed. It reports false for
// [session.KindOther] and unknown kinds.
func Of(kind session.Kind) (Row, bool) {
	if int(kind) >= len(entries) {
		return Row{}, false
	}
	return entries[kind], true
}

// KindOf returns the kind of a request by its subtype, and whether its answer may have
// to wait for a person.
func KindOf(subtype string) (kind session.Kind, person bool) {
	for i := range entries {
		if slices.Contains(entries[i].People, subtype) {
			return session.Kind(i), true
		}
		if slices.Contains(entries[i].Others, subtype) {
			return session.Kind(i), false
		}
	}
	return session.KindOther, false
}

// KindOfActor returns the kind whose requests the actor called name answers.
func KindOfActor(name string) session.Kind {
	return session.Kind(slices.IndexFunc(entries[:], func(e Row) bool { return e.Actor == name }))
}

// Denial answers a request whose callback gave no answer: gates are denied, tools report
// an error, and other requests get an error.
func (d *Deps) Denial(kind session.Kind, f protocol.Frame, reason string) (response []byte, errText string) {
	if int(kind) >= len(entries) {
		return nil, reason
	}
	return entries[kind].Denial(d, f, reason)
}

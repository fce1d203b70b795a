package actors

import (
	"slices"

	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/actors/inquiry"
	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/actors/modelpolicy"
	"github.com/agent-troupe/troupe/actors/permission"
	"github.com/agent-troupe/troupe/internal/actors/dispatch"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// kindSpec describes how a session answers one kind of the agent's requests.
type kindSpec struct {
	actor string // name of the kind's actor below callbacks
	// people are the subtypes whose answer may have to wait for a person, others
	// the rest of the kind's subtypes.
	people, others []string
	// refuses permits the answer of a [dispatch.Refusal], an error. A gate must not
	// set it: an agent may take an error for an allow.
	refuses bool
	// denial answers a request whose callback gave no answer. errText is used when
	// response is nil.
	denial func(r *rules, f protocol.Frame, reason string) (response []byte, errText string)
	// prepare returns what the kind's actor does with a request.
	prepare func(k *Core) dispatch.Prepare
}

// kinds is the registry of the agent's requests. A new kind is a constant in package
// session, an entry here, and the package of its behaviour.
var kinds = [session.KindOther]kindSpec{ //nolint:gochecknoglobals // only read
	session.KindPermission: {
		actor: "permission", people: []string{"can_use_tool"},
		denial: func(r *rules, f protocol.Frame, reason string) ([]byte, string) {
			return permission.Denial(r.dialect, f, reason)
		},
		prepare: func(k *Core) dispatch.Prepare {
			return permission.Prepare(k.cfg.Dialect, k.cfg.CanUseTool, k.cfg.PermissionTimeout)
		},
	},
	session.KindHook: {
		actor: "hooks", others: []string{"hook_callback"},
		denial: func(r *rules, f protocol.Frame, reason string) ([]byte, string) {
			return hooks.Denial(r.dialect, r.hooks, f, reason)
		},
		prepare: func(k *Core) dispatch.Prepare { return hooks.Prepare(k.cfg.Dialect, k.cfg.Hooks) },
	},
	session.KindMCP: {
		actor: "mcp", others: []string{"mcp_message"}, refuses: true,
		denial:  func(_ *rules, f protocol.Frame, reason string) ([]byte, string) { return mcp.Denial(f, reason) },
		prepare: func(k *Core) dispatch.Prepare { return mcp.Prepare(k.Bridge) },
	},
	session.KindModelPolicy: {
		actor: "modelpolicy", others: []string{"get_model_policy"}, refuses: true,
		denial: func(_ *rules, _ protocol.Frame, reason string) ([]byte, string) { return nil, reason },
		prepare: func(k *Core) dispatch.Prepare {
			return modelpolicy.Prepare(k.cfg.Dialect, k.cfg.ResolveModel, k.cfg.ResolveModelLimit)
		},
	},
	session.KindInquiry: {
		actor: "inquiry", refuses: true,
		people: []string{"elicitation", "elicitation_response", "request_user_dialog"},
		others: []string{
			"fetch_job_token", "fetch_service_account_token",
			"memory_should_generate", "skill_evolution_should_review", "resolve_session_artifacts",
		},
		denial: func(r *rules, f protocol.Frame, reason string) ([]byte, string) {
			return inquiry.Denial(r.dialect, f, reason)
		},
		prepare: func(k *Core) dispatch.Prepare { return inquiry.Prepare(k.cfg.Dialect, k.cfg.Inquiries) },
	},
}

// KindOf implements [machine.Rules].
func (r *rules) KindOf(subtype string) (kind session.Kind, person bool) {
	for i := range kinds {
		if slices.Contains(kinds[i].people, subtype) {
			return session.Kind(i), true
		}
		if slices.Contains(kinds[i].others, subtype) {
			return session.Kind(i), false
		}
	}
	return session.KindOther, false
}

// Denial implements [machine.Rules]: gates are denied, tools report an error, and
// other requests get an error.
func (r *rules) Denial(kind session.Kind, f protocol.Frame, reason string) (response []byte, errText string) {
	if int(kind) >= len(kinds) {
		return nil, reason
	}
	return kinds[kind].denial(r, f, reason)
}

// kindOfActor returns the kind that an actor below callbacks answers.
func kindOfActor(name string) session.Kind {
	return session.Kind(slices.IndexFunc(kinds[:], func(s kindSpec) bool { return s.actor == name }))
}

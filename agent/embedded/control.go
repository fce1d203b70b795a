package embedded

import (
	"context"
	"slices"

	"github.com/agent-troupe/troupe/agent"
)

// control answers requests of the host that need the model's endpoint, the conversation or files.
// Requests for things that this agent does not have are unsupported: the engine would give the
// scripted agent's answers.
func (t *talk) control(r *agent.Request) bool {
	switch r.Subtype {
	case "list_models":
		r.Later(func(s *agent.Strand) { t.listModels(s, r) })
	case "rewind_files":
		t.rewinds(r)
	case "get_context_usage":
		r.Succeed(t.contextUsage(r.Model()))
	case "set_max_thinking_tokens", "apply_flag_settings", "update_settings", "seed_read_state", "rename_session", "set_color",
		"register_repo_root", "mcp_message", "set_cwd", "set_mcp_permission_mode_override", "background_tasks", "reload_output_styles",
		"get_hooks_listing", "list_permission_rules", "get_plan", "submit_feedback", "get_settings", "file_suggestions",
		"get_task_output", "reload_plugins", "reload_skills", "generate_session_title", "side_question":
		r.Fail("Unsupported control request subtype: "+r.Subtype, "unsupported_request")
	default:
		return false
	}
	return true
}

// listModels answers with the models of the endpoint behind the session's own and those of
// Options.FallbackModel. Many servers have no list: then it is these alone.
func (t *talk) listModels(s *agent.Strand, r *agent.Request) {
	names := append([]string{r.Model()}, t.fallback.list...)
	if of, ok := t.cfg.Model.(interface {
		Models(ctx context.Context) ([]string, error)
	}); ok {
		var found []string
		_ = s.Do(func(ctx context.Context) (err error) {
			found, err = of.Models(ctx)
			return err
		})
		names = append(names, found...)
	}
	var all []any
	for i, n := range names {
		if !slices.Contains(names[:i], n) {
			all = append(all, agent.Object{"value": n, "displayName": n})
		}
	}
	r.Succeed(agent.Object{"models": all})
}

// contextUsage is an estimate of the next request.
func (t *talk) contextUsage(name string) agent.Object {
	used, window := t.tokens(), t.window(name)
	free, percent := max(window-used, 0), 0
	if window > 0 {
		percent = min(used*100/window, 100)
	}
	return agent.Object{
		"categories": []any{
			agent.Object{"id": "messages", "name": "Messages", "tokens": used, "color": "claude", "kind": "used"},
			agent.Object{"id": "free_space", "name": "Free space", "tokens": free, "color": "promptBorder", "kind": "free"},
		},
		"totalTokens": used, "maxTokens": window, "rawMaxTokens": window, "percentage": percent, "gridRows": []any{}, "model": name,
	}
}

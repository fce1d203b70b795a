package embedded

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// maxOverloads is how many refusals in a row, because of overload, change the model.
const maxOverloads = 3

// fallback changes the model of a turn when the session's own fails. The next turn begins
// with the session's own again.
type fallback struct {
	list      []string // in the order of their use
	used      int      // how many of them the turn has changed to
	overloads int      // in a row
}

// fallbackOf reads Options.FallbackModel.
func fallbackOf(names string) fallback {
	var f fallback
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name != "" {
			f.list = append(f.list, name)
		}
	}
	return f
}

// fresh is the fallback of another turn, or of a sub-agent.
func (f fallback) fresh() fallback { return fallback{list: f.list} }

// changes reports whether the request is repeated with another model. As Claude Code 2.1.329
// does (observed), the third overload in a row changes it, and at once an error of the server
// and a model that does not exist; a rate limit does not. So does a quota that is used up.
func (f *fallback) changes(e *model.Error) bool {
	overload := e.Class == model.Overload && e.Status != http.StatusServiceUnavailable
	if overload {
		f.overloads++
	} else {
		f.overloads = 0
	}
	switch {
	case f.used == len(f.list):
		return false
	case overload && f.overloads < maxOverloads:
		return false
	case e.Class == model.Overload, e.Class == model.Quota, e.Status == http.StatusNotFound,
		e.Class == model.Server && e.Status >= http.StatusInternalServerError:
		f.used++
		f.overloads = 0
		return true
	}
	return false
}

// model is the one of the next request.
func (t *talk) model(l *agent.Lane) string { return cmp.Or(t.chosen.model, t.unchosen(l)) }

// unchosen is the one of a request about which the host is not asked.
func (t *talk) unchosen(l *agent.Lane) string {
	if n := t.fallback.used; n > 0 {
		return t.fallback.list[n-1]
	}
	return t.cfg.named(l.Model())
}

// switched says that the turn continues with another model, as of Claude Code 2.1.329 (observed).
func (t *talk) switched(l *agent.Lane, e *model.Error, from string) {
	to, trigger, why := t.model(l), "overloaded", "due to high demand for "+shownModel(from)
	switch {
	case e.Status == http.StatusNotFound:
		trigger, why = "model_not_found", "because "+shownModel(from)+" is not available"
	case e.Class == model.Server:
		trigger = "server_error"
	case e.Class == model.Quota: // of this agent alone
		trigger, why = "quota", "because the quota for "+shownModel(from)+" is used up"
	}
	l.System("model_fallback", agent.Object{
		"content": "Switched to " + shownModel(to) + " " + why, "fallback_model": to, "original_model": from, "trigger": trigger,
	})
}

// claudeModel has the family and the version of a name of one, without its date.
var claudeModel = regexp.MustCompile(`^claude-([a-z]+)-(\d+(?:-\d)?)(?:-\d{8})?$`)

// shownModel is what Claude Code calls a model: Haiku 5.5 for claude-haiku-5-5. Another name stays.
func shownModel(name string) string {
	m := claudeModel.FindStringSubmatch(name)
	if m == nil {
		return name
	}
	return strings.ToUpper(m[1][:1]) + m[1][1:] + " " + strings.ReplaceAll(m[2], "-", ".")
}

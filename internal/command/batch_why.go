package command

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// whyNot says on one line why a task was not accepted: its error, the last line of its
// verifier, and the calls that were denied.
func whyNot(r *fleet.TaskResult) string {
	parts := []string{shorten(r.Error, 120)}
	if v := r.Verdict; v != nil && !v.OK {
		if last := lastLine(v.Output); last != "" {
			parts = append(parts, shorten(last, 120))
		}
	}
	for _, d := range deniedCalls(r) {
		parts = append(parts, "denied: "+shorten(d, 200))
	}
	return strings.Join(parts, "; ")
}

// whyNotInFull is whyNot with the whole output of the verifier, on several lines.
func whyNotInFull(r *fleet.TaskResult) string {
	var b strings.Builder
	b.WriteString(printable(r.Error))
	if v := r.Verdict; v != nil && !v.OK && strings.TrimSpace(v.Output) != "" {
		b.WriteString("; the verifier said:")
		for line := range strings.Lines(strings.TrimSpace(v.Output)) {
			b.WriteString("\n    " + printable(strings.TrimRight(line, "\r\n")))
		}
	}
	for _, d := range deniedCalls(r) {
		b.WriteString("\n  denied: " + printable(d))
	}
	return b.String()
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// deniedCalls are the calls that were denied, each with its reason. Equal ones are one.
func deniedCalls(r *fleet.TaskResult) []string {
	var all []string
	times := map[string]int{}
	for _, d := range r.Denials {
		text := callText(d)
		if d.Reason != "" {
			text += " (" + d.Reason + ")"
		}
		if times[text]++; times[text] == 1 {
			all = append(all, text)
		}
	}
	for i, text := range all {
		if n := times[text]; n > 1 {
			all[i] = fmt.Sprintf("%s, %s", text, shown.Count(n, "time"))
		}
	}
	if more := r.Denied - len(r.Denials); more > 0 {
		all = append(all, "and "+shown.Count(more, "more call"))
	}
	return all
}

// callText is a call as a person reads it.
func callText(d fleet.Denial) string {
	var in map[string]any
	if json.Unmarshal([]byte(d.Input), &in) == nil {
		for _, key := range []string{"command", "file_path", "path", "url", "pattern"} {
			if text, ok := in[key].(string); ok {
				return d.Tool + " " + text
			}
		}
	}
	return strings.TrimSpace(d.Tool + " " + d.Input)
}

// hintAfter is how many tasks have to come to nothing because all of their calls were denied
// until a hint says what would allow them.
const hintAfter = 3

// ruleHint is a hint for tasks whose calls were all denied; "" if no rule would help.
func ruleHint(tasks []*fleet.TaskResult) string {
	var rules []string
	seen := map[string]bool{}
	for _, r := range tasks {
		for _, d := range r.Denials {
			if rule := ruleFor(d); rule != "" && !seen[rule] {
				seen[rule] = true
				rules = append(rules, rule)
			}
		}
	}
	if len(rules) == 0 {
		return ""
	}
	return fmt.Sprintf("all calls of the first %d tasks were denied; --allowed-tools '%s' would allow them", len(tasks), strings.Join(rules, ","))
}

// anywhere stands for the directory of a call, which a denial does not name.
const anywhere = "/workspace"

// ruleFor is a narrow rule that allows a call, or "".
func ruleFor(d fleet.Denial) string {
	var candidates []string
	var in struct {
		Command string `json:"command"`
	}
	if d.Tool == "Bash" && json.Unmarshal([]byte(d.Input), &in) == nil {
		words := strings.Fields(in.Command)
		for n := min(2, len(words)); n > 0; n-- {
			if n == 2 && strings.HasPrefix(words[1], "-") {
				continue
			}
			candidates = append(candidates, "Bash("+strings.Join(words[:n], " ")+" *)")
		}
	}
	for _, rule := range append(candidates, d.Tool) {
		p, err := policy.Compile(policy.Rules{Allow: []string{rule}, Default: policy.Deny, Cwd: anywhere})
		if err != nil {
			continue
		}
		input := json.RawMessage(d.Input)
		if !json.Valid(input) { // it was too long to be kept whole
			input = json.RawMessage("{}")
			if rule != d.Tool {
				continue
			}
		}
		if rule == d.Tool || p.Decide(policy.Call{Tool: d.Tool, Input: input, Cwd: anywhere}) == protocol.BehaviorAllow {
			return rule
		}
	}
	return ""
}

package differential

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/conformance/modelapi"
)

// script answers requests as a case says.
type script struct {
	c     *Case
	place *Place

	mu   sync.Mutex
	next map[string]int  // by conversation
	told strings.Builder // all text that the model has been sent
}

const often = 1 << 30

// answer is the model's next answer: a request that is repeated takes the next one, too.
func (s *script) answer(call modelapi.Call) modelapi.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range call.Request.Messages {
		for _, b := range m.Content {
			s.told.WriteString(b.Text + "\n")
		}
	}
	steps, prefix := s.c.Script, ""
	if len(call.Request.Tools) == 0 && len(s.c.Side) > 0 {
		steps, prefix = s.c.Side, "side_"
	} else if key := subagent(call.Request.Messages); key != "" {
		steps, prefix = s.c.Subagents[key], key+"_"
	}
	if s.next == nil {
		s.next = map[string]int{}
	}
	n := s.next[prefix]
	s.next[prefix]++
	if n >= len(steps) {
		return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("Done.")}}
	}
	return s.reply(&steps[n], fmt.Sprintf("toolu_%s%d", prefix, n))
}

// alone are the calls of the main script that run with no other, since they change something.
func (c *Case) alone() map[string]bool {
	ids := map[string]bool{}
	for n := range c.Script {
		for i, b := range c.Script[n].Content {
			switch b.Name {
			case "Edit", "NotebookEdit", "TaskCreate", "TaskUpdate", "TodoWrite", "Write":
				ids[cmp.Or(b.ID, fmt.Sprintf("toolu_%d_%d", n, i))] = true
			}
		}
	}
	return ids
}

var subMarker = regexp.MustCompile(`\[\[sub:(\w+)\]\]`)

// subagent is the key of the subagent whose conversation it is; "": the main one.
func subagent(messages []modelapi.Message) string {
	for _, m := range messages {
		if m.Role != "user" {
			continue
		}
		for _, b := range m.Content {
			if found := subMarker.FindStringSubmatch(b.Text); found != nil && b.Type == "text" {
				return found[1]
			}
		}
		break
	}
	return ""
}

// nested reports whether it is the conversation of an agent that a scenario starts.
func nested(messages []modelapi.Message) bool {
	i := slices.IndexFunc(messages, func(m modelapi.Message) bool { return m.Role == "user" })
	return i >= 0 && slices.ContainsFunc(messages[i].Content, func(b modelapi.Content) bool {
		return strings.HasPrefix(b.Text, "Do the nested job")
	})
}

func (s *script) reply(step *Step, id string) modelapi.Reply {
	for _, a := range step.Actions {
		s.act(a.Do, a.Path, a.Text)
	}
	r := modelapi.Reply{Stop: step.Stop, Usage: step.Usage, Delta: step.Delta, Hang: bool(step.Hang), Delay: seconds(step.Delay)}
	for i, b := range step.Content {
		r.Blocks = append(r.Blocks, s.block(&b, fmt.Sprintf("%s_%d", id, i)))
	}
	switch {
	case step.Reset:
		r.Fault = &modelapi.Fault{Times: often}
	case step.Status != 0:
		r.Fault = &modelapi.Fault{Status: step.Status, Type: step.ErrorType, Message: step.Message, Header: step.Headers, Times: often}
	case step.Raw != nil:
		r.Raw = &modelapi.Raw{ContentType: step.ContentType, Body: *step.Raw}
	case step.CutAfter > 0:
		r.Cut = &modelapi.Cut{Events: step.CutAfter, Times: often, Clean: step.CutHow != "reset", Stall: seconds(step.Stall)}
		if !r.Cut.Clean { // for the client to read what came: a reset throws it away
			r.Cut.Stall = max(r.Cut.Stall, time.Second)
		}
	case step.StreamError != nil:
		r.Broken = &modelapi.Fault{Type: step.StreamError.Type, Message: step.StreamError.Message}
	}
	return r
}

func (s *script) block(b *Content, id string) modelapi.Block {
	var out modelapi.Block
	switch b.Type {
	case "thinking":
		out = modelapi.Thinking(b.Thinking)
	case "tool_use":
		if b.ID != "" {
			id = b.ID
		}
		if b.Raw != nil {
			out = modelapi.RawToolUse(b.Name, *b.Raw)
		} else {
			out = modelapi.RawToolUse(b.Name, string(s.fill(b.Input)))
		}
		out = out.WithID(id)
	default:
		out = modelapi.Text(b.Text)
	}
	return out.After(seconds(b.Pause))
}

var fromText = regexp.MustCompile(`\$RE\(((?:[^()]|\([^()]*\))*)\)|\$\{RE:([^}]*)\}`)

// fill puts into an input what the model has read.
func (s *script) fill(input json.RawMessage) json.RawMessage {
	if !strings.Contains(string(input), "RE") {
		return input
	}
	told := s.told.String()
	return eachLiteral(input, func(text string) string {
		return fromText.ReplaceAllStringFunc(text, func(m string) string {
			found := fromText.FindStringSubmatch(m)
			re, err := regexp.Compile(found[1] + found[2])
			if err != nil {
				return m
			}
			all := re.FindAllStringSubmatch(told, -1)
			if len(all) == 0 {
				return m
			}
			return all[len(all)-1][1]
		})
	})
}

func (s *script) act(do, path, text string) {
	path = s.place.path(path)
	switch do { // what fails shows as a difference
	case "write":
		_ = os.WriteFile(path, []byte(text), 0o600)
	case "touch":
		_ = os.Chtimes(path, time.Now(), time.Now())
	case "remove":
		_ = os.Remove(path)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

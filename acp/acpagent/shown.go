package acpagent

import (
	"reflect"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/view"
	"github.com/agent-troupe/troupe/sdk"
)

// shown is what the editor has been shown. Its lock is held while an update is sent, so
// that updates have one order.
type shown struct {
	mu      sync.Mutex
	tools   map[string]*tool // those that are open
	closed  map[string]bool  // those that were
	message string           // id of the message that is written
	texts   map[string]*amount
	todos   view.Todos
	plan    bool             // a plan is shown
	agentID string           // of the last system/init
	title   string           // "": none
	used    int64            // tokens in the model's context; 0: not known
	output  int64            // those of used that the last message's text has, as far as it is known
	size    int64            // of the context window; 0: not known
	usage   *acp.UsageUpdate // the last one that was sent, or nil

	compact   string // id of the compaction that runs; "": none
	compacted string // id of the compaction that ended last, until it is described; "": none
}

// amount counts the bytes of a message's text or thinking: those that were streamed, and
// those that came in whole blocks.
type amount struct{ sent, whole [2]int }

const (
	ofText = iota
	ofThought
)

// message shows a message of the agent.
func (s *session) message(m sdk.Message) {
	s.shown.mu.Lock()
	defer s.shown.mu.Unlock()
	s.learnAgentID(m)
	if s.shown.todos.Add(m) {
		s.showPlan()
	}
	if view.Replayed(m) {
		return
	}
	switch m := m.(type) {
	case *protocol.PartialAssistantMessage:
		if m.ParentToolUseID == "" {
			s.streamed(m.Event)
		}
	case *protocol.AssistantMessage:
		s.assistant(m)
	case *protocol.UserMessage:
		for _, r := range protocol.ToolResults(m) {
			s.toolResult(r, m.ToolUseResult)
		}
	case *protocol.ToolProgressMessage:
		s.toolStarted(m.ToolUseID)
	case *protocol.InitMessage:
		s.initialized(m)
	case *protocol.StatusMessage:
		s.status(m)
	case *protocol.CommandsChangedMessage:
		s.mu.Lock()
		s.settings.commands = m.Commands
		s.mu.Unlock()
		s.announce()
	case *protocol.InformationalMessage:
		if s.live() { // what the end of the session causes, such as a hook without an answer, is not news
			s.notice(severity(m.Level), m.Content)
		}
	case *protocol.CompactBoundaryMessage:
		s.compacted(m)
	case *protocol.SessionTitleChangedMessage:
		s.titled(m.Title, time.Time{})
	case *protocol.ResultMessage:
		s.result(m)
	}
}

// learnAgentID: the agent has a conversation once it reports a turn.
func (s *session) learnAgentID(m sdk.Message) {
	id := ""
	switch m := m.(type) {
	case *protocol.AssistantMessage:
		id = m.SessionID
	case *protocol.ResultMessage:
		id = m.SessionID
	}
	if id != "" {
		s.mu.Lock()
		s.known, s.agentID = true, id
		s.mu.Unlock()
	}
}

// streamed shows a piece of a message while it is written.
func (s *session) streamed(e protocol.StreamEvent) {
	switch e := e.(type) {
	case *protocol.MessageStart:
		s.shown.message = e.Message.ID
	case *protocol.MessageDelta:
		if e.Usage != nil { // the message itself counts only its first tokens
			more := max(0, e.Usage.OutputTokens-s.shown.output)
			s.shown.used, s.shown.output = s.shown.used+more, s.shown.output+more
		}
	case *protocol.ContentBlockStart:
		if use, ok := e.Block.(*protocol.ToolUseBlock); ok {
			s.toolSeen(use.ID, use.Name, "")
		}
	case *protocol.ContentBlockDelta:
		switch d := e.Delta.(type) {
		case *protocol.DeltaText:
			s.chunk(s.shown.message, ofText, d.Text)
			s.amount(s.shown.message).sent[ofText] += len(d.Text)
		case *protocol.DeltaThinking:
			s.chunk(s.shown.message, ofThought, d.Thinking)
			s.amount(s.shown.message).sent[ofThought] += len(d.Thinking)
		}
	}
}

func (s *session) amount(message string) *amount {
	a := s.shown.texts[message]
	if a == nil {
		if s.shown.texts == nil {
			s.shown.texts = map[string]*amount{}
		}
		a = &amount{}
		s.shown.texts[message] = a
	}
	return a
}

// assistant shows a block of a message that is whole: what was not streamed of it.
func (s *session) assistant(m *protocol.AssistantMessage) {
	if m.ParentToolUseID == "" && m.Message.Usage != nil {
		u := m.Message.Usage
		s.shown.used = u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens + u.OutputTokens
		s.shown.output = u.OutputTokens
	}
	for _, b := range m.Message.Content {
		switch b := b.(type) {
		case *protocol.TextBlock:
			if !m.IsAPIErrorMessage && !m.QoderAPIError { // the prompt's answer has it
				s.rest(m, ofText, b.Text)
			}
		case *protocol.ThinkingBlock:
			s.rest(m, ofThought, b.Thinking)
		case *protocol.ToolUseBlock:
			s.toolCalled(b.ID, b.Name, m.ParentToolUseID, b.Input)
		}
	}
}

// rest shows the end of a block, as far as it was not streamed.
func (s *session) rest(m *protocol.AssistantMessage, kind int, text string) {
	if m.ParentToolUseID != "" {
		return // a subagent's text is in its report
	}
	a := s.amount(m.Message.ID)
	a.whole[kind] += len(text)
	if missing := min(a.whole[kind]-a.sent[kind], len(text)); missing > 0 {
		s.chunk(m.Message.ID, kind, text[len(text)-missing:])
		a.sent[kind] += missing
	}
}

func (s *session) chunk(message string, kind int, text string) {
	if text == "" {
		return
	}
	c := &acp.ContentChunk{Content: textBlock(text), MessageID: acp.MessageID(message)}
	if kind == ofThought {
		s.send(acp.SessionUpdate{AgentThoughtChunk: c})
		return
	}
	s.send(acp.SessionUpdate{AgentMessageChunk: c})
}

// initialized takes the start of a turn.
func (s *session) initialized(m *protocol.InitMessage) {
	if s.shown.agentID != "" && s.shown.agentID != m.SessionID && s.shown.plan { // such as /clear
		s.shown.todos, s.shown.plan = view.Todos{}, false
		s.send(acp.SessionUpdate{Plan: &acp.Plan{}})
	}
	s.shown.agentID = m.SessionID
	s.mu.Lock()
	s.settings.awaited = nil // an agent that did not report a mode until now does not
	s.mu.Unlock()
	s.modeIs(m.PermissionMode)
}

// notice shows a remark that is not the model's.
func (s *session) notice(severity acp.NoticeSeverity, text string) {
	if client := s.server.capabilities().Session; client != nil && client.Notices != nil {
		s.send(acp.SessionUpdate{Notice: &acp.Notice{Severity: severity, Title: text}})
		return
	}
	s.chunk("", ofText, "**Notice:** "+text+"\n\n")
}

func severity(level string) acp.NoticeSeverity {
	if level == "warning" {
		return acp.NoticeSeverityWarning
	}
	return acp.NoticeSeverityInfo
}

// showPlan shows what the agent means to do.
func (s *session) showPlan() {
	p := &acp.Plan{}
	for _, e := range s.shown.todos.Entries() {
		one := acp.PlanEntry{Content: e.Content, Priority: acp.PlanEntryPriorityMedium, Status: acp.PlanEntryStatusPending}
		switch e.Status {
		case "in_progress":
			one.Status = acp.PlanEntryStatusInProgress
		case "completed", "cancelled":
			one.Status = acp.PlanEntryStatusCompleted
		}
		switch e.Priority {
		case "high":
			one.Priority = acp.PlanEntryPriorityHigh
		case "low":
			one.Priority = acp.PlanEntryPriorityLow
		}
		p.Entries = append(p.Entries, one)
	}
	s.shown.plan = len(p.Entries) > 0
	s.send(acp.SessionUpdate{Plan: p})
}

// result ends a turn: all of its tool calls are closed before the prompt's answer.
func (s *session) result(m *protocol.ResultMessage) {
	why := "The turn ended without the tool's result."
	if m.Interrupted() {
		why = "The turn was cancelled."
	}
	s.failTools(m.Interrupted(), why)
	clear(s.shown.texts)
	for _, u := range m.ModelUsage {
		s.shown.size = max(s.shown.size, u.ContextWindow)
	}
	if s.shown.size > 0 {
		u := &acp.UsageUpdate{Used: min(s.shown.used, s.shown.size), Size: s.shown.size}
		if m.TotalCostUSD > 0 {
			u.Cost = &acp.Cost{Amount: m.TotalCostUSD, Currency: "USD"}
		}
		if same := s.shown.usage; same == nil || same.Used != u.Used || same.Size != u.Size || !reflect.DeepEqual(same.Cost, u.Cost) {
			s.send(acp.SessionUpdate{UsageUpdate: u})
		}
		s.shown.usage = u
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rendered[m.UUID] = true
	s.changed.Broadcast()
}

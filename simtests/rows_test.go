package simtests_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
	"github.com/agent-troupe/troupe/supervisor"
)

// The rows of the two tables of failures in docs/design.md, by their first cells.
const (
	rowBeforeCommit   = "any actor, before Commit"
	rowAfterCommit    = "router or session actor, after Commit"
	rowRouterInStep   = "router, inside a step"
	rowSessionInStep  = "session actor, inside a step"
	rowSessionActor   = "session actor"
	rowCallbackActor  = "callback actor"
	rowTransportActor = "transport actor"
	rowIntensity      = "router, transport or session actor, more often than the intensity allows"
	rowUsersChild     = "a child of `Options.Children`"
	rowFleet          = "fleet actor"

	rowNoBinary   = "agent binary missing, not executable, bad directory"
	rowInitialize = "initialize refused, never answered"
	rowAgentDies  = "agent exits or is killed"
	rowCallback   = "callback errors, panics, exceeds its deadline"
	rowConsumer   = "consumer stands still"
	rowAnswers    = "agent makes requests and does not take the answers"
	rowCallBehind = "an answer follows more unread messages than the hard bound allows"
)

func allRows() []string {
	return []string{
		rowBeforeCommit, rowAfterCommit, rowRouterInStep, rowSessionInStep, rowSessionActor, rowCallbackActor, rowTransportActor, rowIntensity, rowUsersChild, rowFleet,
		rowNoBinary, rowInitialize, rowAgentDies, rowCallback, rowConsumer, rowAnswers, rowCallBehind,
	}
}

// A row of the document that has no counter here is one that CI does not count.
func TestRowsAreThoseOfTheDesign(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/design.md")
	require.NoError(t, err)
	var found []string
	for _, head := range []string{"| who dies | what happens |", "| failure | what happens |"} {
		_, table, there := strings.Cut(string(page), head+"\n")
		require.True(t, there, head)
		table, _, _ = strings.Cut(table, "\n\n")
		for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
			found = append(found, m[1])
		}
	}
	want := allRows()
	slices.Sort(found)
	slices.Sort(want)
	assert.Equal(t, want, found)
}

// row says that a history has reached a row.
func row(w *simtests.World, name string) { w.Sometimes("row: "+name, true) }

// rows counts what the events of a session show of the tables.
func rows(w *simtests.World, r session.EventRecord) {
	switch e := r.Event.(type) {
	case *session.CallbackFailed:
		row(w, rowCallback)
	case *session.StateChanged:
		switch e.To {
		case session.StateRecovering.String():
			row(w, rowAgentDies)
		case session.StateAwaitingConsumer.String():
			row(w, rowConsumer)
		}
	case *session.Ended:
		if _, died := errors.AsType[*session.ExitError](e.Reason); died {
			row(w, rowAgentDies)
		}
		if k, killed := errors.AsType[*kernel.Killed](e.Reason); killed && k.At == kernel.InStep {
			if strings.HasPrefix(k.Actor, "router") {
				row(w, rowRouterInStep)
			} else {
				row(w, rowSessionInStep)
			}
		}
	case *session.Supervision:
		switch d := e.Decision.(type) {
		case *supervisor.ChildFailed:
			actorFailed(w, d)
		case *supervisor.IntensityExceeded:
			row(w, rowIntensity)
		}
	}
}

func actorFailed(w *simtests.World, d *supervisor.ChildFailed) {
	ofSession := strings.HasPrefix(d.Supervisor, "fleet/")
	if k, killed := errors.AsType[*kernel.Killed](d.Reason); killed {
		switch {
		case k.At == kernel.BeforeMessage:
			row(w, rowBeforeCommit)
		case k.At == kernel.AfterEffect && (ofSession || d.Child == "router"):
			row(w, rowAfterCommit)
		}
	}
	switch {
	case ofSession:
		row(w, rowSessionActor)
	case d.Child == "transport":
		row(w, rowTransportActor)
	case slices.Contains([]string{"hooks", "permission", "mcp", "modelpolicy", "inquiry"}, d.Child):
		row(w, rowCallbackActor)
	case d.Child == "recorder":
		row(w, rowUsersChild)
	}
}

// missing is a program that is not there.
type missing struct{}

func (missing) Spawn(context.Context, session.Command) (session.Process, error) {
	return nil, &session.StartError{Path: "/nowhere/claude", Err: os.ErrNotExist}
}

// startsNothing opens a session whose agent is not there.
func startsNothing(w *simtests.World) {
	_, err := w.Runtime().Open(w.Context(), runtime.Spec{Dialect: claude.New(), Options: session.Options{Spawner: missing{}, OnEvent: func(r session.EventRecord) { rows(w, r) }}})
	if _, is := errors.AsType[*session.StartError](err); is {
		row(w, rowNoBinary)
	}
}

// refuses opens a session whose agent does not come up.
func refuses(w *simtests.World) {
	s := &scripted.Script{}
	s.Misbehave.Initialize.Mode = []string{"never", "refuse"}[w.Rand().IntN(2)]
	_, err := w.Dial(&sdk.Options{}, s)
	_, refused := errors.AsType[*session.ControlError](err)
	_, silent := errors.AsType[*session.TimeoutError](err)
	if refused || silent {
		row(w, rowInitialize)
	}
}

// crammer is an agent that makes requests and takes no answers.
type crammer struct{ w *simtests.World }

func (crammer) AgentName() string { return "crammer" }

func (c crammer) Serve(_ agent.Launch, port agent.Port) agent.Exit {
	say := func(format string, args ...any) { _ = port.Write(fmt.Appendf(nil, format+"\n", args...)) } // a host that is gone ends Next
	for asked := false; ; {
		line, err := port.Next(-1)
		if errors.Is(err, io.EOF) || errors.Is(err, agent.ErrKilled) || errors.Is(err, agent.ErrTerminated) {
			return agent.Exit{}
		}
		f, err := protocol.ParseFrame(line)
		switch {
		case err != nil:
		case f.Type == "control_request":
			say(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"commands":[]}}}`, f.RequestID)
		case f.Type == "user" && !asked:
			asked = true
			for n := range 180 { // the denials repeat the subtype
				say(`{"type":"control_request","request_id":"r%d","request":{"subtype":%q}}`, n, strings.Repeat("x", 60_000))
				c.w.Sleep(time.Millisecond)
			}
		}
	}
}

// crams has a session with such an agent.
func crams(w *simtests.World) {
	s, err := w.Runtime().Open(w.Context(), runtime.Spec{Dialect: claude.New(), Program: crammer{w}})
	if err != nil {
		return
	}
	_, err = s.Send(w.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("read")}})
	for n := 0; err == nil && n < 2; n++ {
		w.Sleep(time.Second)
		if slices.ContainsFunc(s.Tree(w.Context()).Waits, func(wait session.Wait) bool { return wait.What == "agent to take its answers" }) {
			row(w, rowAnswers)
		}
	}
	_ = s.Close(w.Context()) // it may have died
}

// callBehind makes a call whose answer lies behind what nobody reads.
func callBehind(w *simtests.World) {
	c, err := w.Dial(&sdk.Options{
		Limits: session.Limits{Messages: 4, Bytes: 2000, HardBytes: 4000}, OnEvent: func(r session.EventRecord) { rows(w, r) },
	}, &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{scripted.Delay(time.Second), &scripted.Flood{Count: 40, Size: 200}}}}})
	if err != nil {
		return
	}
	w.Go(func() {
		if errors.Is(c.SetModel(w.Context(), "sonnet"), session.ErrConsumerStalled) && !c.State().Terminal() {
			row(w, rowCallBehind)
		}
	})
	if _, err := c.Send(w.Context(), sdk.UserText("go")); err == nil {
		w.Sleep(1100 * time.Millisecond)
		if errors.Is(c.SetModel(w.Context(), "sonnet"), session.ErrConsumerStalled) && !c.State().Terminal() {
			row(w, rowCallBehind)
		}
	}
	_ = c.Close(w.Context()) // it may have died
}

// recorder is a child of the user's own that fails now and then.
func recorder(w *simtests.World) *session.Child {
	c, _ := session.NewChild(supervisor.Child{Name: "recorder"}, func() session.Behavior[int] {
		return session.Behavior[int]{Event: func(context.Context, session.EventRecord) error {
			if w.Rand().IntN(20) == 0 {
				return errors.New("the disk is full")
			}
			return nil
		}}
	})
	return c
}

package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/sdk"
)

// drive sends the prompts of a case, each after the result of the one before, and returns
// what was said before the session was closed.
func drive(ctx context.Context, c *Case, a Agent, o *sdk.Options, t *tap) ([]line, error) {
	client := sdk.NewClient(o)
	if err := client.Connect(ctx); err != nil {
		return nil, err
	}
	events, stop := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer stop()
	tasks.Go(func() {
		for _, err := range client.Messages(events) {
			if err != nil {
				return
			}
		}
	})
	for _, e := range c.Events {
		tasks.Go(func() { e.act(events, client, t) })
	}
	err := func() error {
		for i, p := range c.Prompts {
			if _, err := client.Send(ctx, sdk.UserText(p)); err != nil {
				return err
			}
			if err := t.wait(ctx, func(l []line) bool { return results(l) > i }); err != nil {
				return fmt.Errorf("wait for the result of prompt %d: %w", i+1, err)
			}
		}
		if err := a.settle(ctx, c, t); err != nil {
			return err
		}
		idle, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_ = client.AwaitIdle(idle) // else Close interrupts a turn that the agent has ended
		return nil
	}()
	log, _ := t.said()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	if closing := client.Close(end); err == nil && closing != nil && ctx.Err() != nil {
		err = closing
	}
	return log, err
}

// results counts those in a log.
func results(log []line) (n int) {
	for _, l := range log {
		if l.agent && typeOf(l.text) == "result" {
			n++
		}
	}
	return n
}

func typeOf(text []byte) string {
	var f struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(text, &f) // not a frame
	return f.Type
}

// settle waits for turns that follow without a prompt.
func (a *Agent) settle(ctx context.Context, c *Case, t *tap) error {
	const most = 10 * time.Second
	short, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if a.Results > len(c.Prompts) {
		_ = t.wait(short, func(l []line) bool { return results(l) >= a.Results }) // what does not come is a difference
		return ctx.Err()
	}
	if a.Results > 0 { // the session may still have to say that it is idle
		short, cancel = context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
	}
	_ = t.wait(short, settled)
	return ctx.Err()
}

// settled reports whether the agent is idle, and every task that it has begun has been
// reported.
func settled(log []line) bool {
	state, open, owed := "", map[string]bool{}, false
	for _, l := range log {
		if !l.agent {
			continue
		}
		var f struct {
			Type    string `json:"type"`
			Subtype string `json:"subtype"`
			State   string `json:"state"`
			TaskID  string `json:"task_id"`
			Status  string `json:"status"`
		}
		if json.Unmarshal(l.text, &f) != nil {
			continue
		}
		switch {
		case f.Type == "result":
			owed = false
		case f.Subtype == "session_state_changed":
			state = f.State
		case f.Subtype == "task_started":
			open[f.TaskID] = true
		case f.Subtype == "task_notification":
			delete(open, f.TaskID)
			owed = f.Status != "stopped" && state == "idle"
		}
	}
	return state == "idle" && len(open) == 0 && !owed
}

// act does what the event says, once.
func (e *Event) act(ctx context.Context, client *sdk.Client, t *tap) {
	err := t.wait(ctx, func(log []line) bool {
		for _, l := range log {
			var frame map[string]any
			if l.agent && json.Unmarshal(l.text, &frame) == nil && within(e.After, frame) {
				return true
			}
		}
		return false
	})
	if err != nil {
		return
	}
	timer := time.NewTimer(seconds(e.Delay))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	if e.Do == "interrupt" {
		_, _ = client.Interrupt(ctx) // what does not work shows as a difference
		return
	}
	_, _ = client.Send(ctx, sdk.UserText(e.Text))
}

// within reports whether o has the members of part.
func within(part, o map[string]any) bool {
	for name, want := range part {
		got := o[name]
		inner, ok := want.(map[string]any)
		if ok {
			have, _ := got.(map[string]any)
			if !within(inner, have) {
				return false
			}
			continue
		}
		if got != want {
			return false
		}
	}
	return true
}

package ui_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
)

// TestAJobThatIsOverIsSaid: the stream says how a job has ended that its program does not have any more.
func TestAJobThatIsOverIsSaid(t *testing.T) {
	t.Parallel()
	job := newJob()
	job.set(fakeTask{ID: "a", State: "running"}, "")
	var mu sync.Mutex
	jobs := []ui.Job{job}
	cfg := open()
	cfg.Jobs = func() []ui.Job {
		mu.Lock()
		defer mu.Unlock()
		return jobs
	}
	p := serve(t, ui.Handler(newRuntime(t), cfg)).enter("")
	ticks, tasks := 0, []any(nil)
	p.follow("", func(f frame) bool {
		switch f.kind {
		case "tick":
			if ticks++; ticks == 2 { // the jobs have been looked at
				job.set(fakeTask{ID: "a", State: "over"}, "accepted")
				mu.Lock()
				defer mu.Unlock()
				jobs = nil
			}
		case "task":
			assert.Equal(t, "job", f.data["job"])
			tasks = append(tasks, f.data["tasks"].([]any)...)
		case "job":
			if f.data["live"] == nil { // the window may look between the two changes
				return false
			}
			assert.Equal(t, []any{"job", false, map[string]any{"over": 1.0}}, []any{f.data["job"], f.data["live"], f.data["states"]})
			return true
		}
		return false
	})
	assert.Equal(t, []any{map[string]any{"id": "a", "state": "over"}}, tasks, "its last states")
}

// TestAProgramThatComesIsSaid: the stream has the list of the hosts, and each change of it.
func TestAProgramThatComesIsSaid(t *testing.T) {
	t.Parallel()
	f := newFar(t, inspect.Access{})
	var mu sync.Mutex
	hosts := []ui.Host{}
	w := ui.Handler(newRuntime(t), ui.Config{Access: inspect.Access{Content: true}, Hosts: func(context.Context) ([]ui.Host, error) {
		mu.Lock()
		defer mu.Unlock()
		return hosts, nil
	}})
	p, ticks := serve(t, w).enter(""), 0
	said := map[string]bool{}
	p.follow("", func(fr frame) bool {
		mu.Lock()
		defer mu.Unlock()
		switch fr.kind {
		case "tick":
			if ticks++; ticks == 2 { // the first look, which says nothing of the jobs that it finds, is over
				hosts = []ui.Host{f.host}
			}
		case "hosts":
			if all := fr.data["hosts"].([]any); len(all) == 1 {
				assert.Equal(t, "77", all[0].(map[string]any)["id"])
				said["host"] = true
			}
		case "job":
			assert.Equal(t, []any{"job", "77"}, []any{fr.data["job"], fr.data["host_id"]})
			if fmt.Sprint(fr.data["live"]) == "false" {
				return len(said) == 2
			}
			said["job"] = true
		}
		if len(said) == 2 {
			hosts = []ui.Host{}
		}
		return false
	})
}

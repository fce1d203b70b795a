package command

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// topMachines is troupe top --cluster.
func topMachines(ctx context.Context, p process, c *console, s *settings) int {
	if err := s.completeServers(p, "troupe top --cluster"); err != nil {
		return c.usage(err)
	}
	if err := s.needsServers("troupe top --cluster"); err != nil {
		return c.usage(err)
	}
	cluster, err := s.connect(ctx, p)
	if err != nil {
		return machinesFailed(c, err)
	}
	defer cluster.Close()
	if s.window.open {
		w := newClusterWindow(ctx, cluster)
		defer w.close()
		return topWindow(ctx, p, c, s, w.hosts)
	}
	see := func() (clusterSeen, error) {
		within, cancel := context.WithTimeout(ctx, shutdownLimit)
		defer cancel()
		hosts, err := cluster.Hosts(within)
		if err != nil {
			return clusterSeen{}, err
		}
		jobs, err := cluster.Jobs(within)
		return clusterSeen{Hosts: hosts, Jobs: jobs}, err
	}
	if s.asJSON || !p.stdoutTTY || !p.stdinTTY || p.getenv("TERM") == "dumb" {
		seen, err := see()
		if err != nil {
			return machinesFailed(c, err)
		}
		if s.asJSON {
			return c.printJSON(seen)
		}
		return c.print(seen.text(time.Now()))
	}
	model := clusterModel{look: func() tea.Msg {
		seen, err := see()
		seen.err = err
		return seen
	}}
	_, err = tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(p.stdin), tea.WithOutput(p.stdout),
		tea.WithEnvironment(os.Environ()), tea.WithoutSignalHandler()).Run()
	if err != nil && ctx.Err() == nil {
		return c.outputLost(err)
	}
	return exitOK
}

// clusterSeen is what the servers know of all machines.
type clusterSeen struct {
	Hosts []HostEntry `json:"hosts"`
	Jobs  []JobEntry  `json:"jobs"`
	at    time.Time
	err   error
}

// text is a line for each worker, and then one for each job.
func (v *clusterSeen) text(now time.Time) string {
	var b strings.Builder
	places, running := 0, 0
	for _, h := range v.Hosts {
		places, running = places+h.Places, running+h.Running
	}
	fmt.Fprintf(&b, "%d workers, %d tasks running, %d places\n", len(v.Hosts), running, places)
	if len(v.Hosts) > 0 {
		fmt.Fprintf(&b, "%-20s %-9s %-8s %-32s %-20s %s\n", "WORKER", "RUNNING", "SINCE", "AGENTS", "LABELS", "JOBS")
	}
	for _, h := range v.Hosts {
		state := fmt.Sprintf("%d/%d", h.Running, h.Places)
		if h.Places == 0 {
			state = fmt.Sprintf("%d/auto", h.Running)
		}
		if h.Draining {
			state += " drain"
		}
		var labels, jobs, agents []string
		for _, name := range h.Agents {
			agents = append(agents, strings.TrimSpace(name+" "+h.Releases[name]))
		}
		for _, key := range slices.Sorted(maps.Keys(h.Labels)) {
			labels = append(labels, key+"="+h.Labels[key])
		}
		for _, j := range h.Jobs {
			text := fmt.Sprintf("%s %d", j.Job, len(j.Running))
			if j.Why != "" {
				text = j.Job + ": " + j.Why
			}
			jobs = append(jobs, text)
		}
		fmt.Fprintf(&b, "%-20s %-9s %-8s %-32s %-20s %s\n", shorten(h.Host, 20), state, rounded(now.Sub(h.Started)),
			shorten(strings.Join(agents, ","), 32), shorten(strings.Join(labels, ","), 20), shorten(strings.Join(jobs, "; "), 100))
	}
	return b.String() + "\n" + jobsText(v.Jobs, v.Hosts, now)
}

// clusterModel is the screen of troupe top --cluster.
type clusterModel struct {
	look tea.Cmd
	seen clusterSeen
	ever bool
}

// Init implements [tea.Model].
func (m clusterModel) Init() tea.Cmd { return m.look }

// Update implements [tea.Model].
func (m clusterModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case clusterSeen:
		if msg.err == nil {
			m.seen = msg
		}
		m.seen.err, m.ever = msg.err, true
		return m, tea.Tick(2*topInterval, func(time.Time) tea.Msg { return lookAgain{} })
	case lookAgain:
		return m, m.look
	case tea.KeyPressMsg:
		if key := msg.String(); key == "q" || key == "ctrl+c" {
			return m, tea.Quit
		}
	}
	return m, nil
}

// View implements [tea.Model].
func (m clusterModel) View() tea.View {
	text := "asking the servers\n"
	if m.ever {
		text = m.seen.text(time.Now())
	}
	if m.seen.err != nil {
		text += "\n" + printable(m.seen.err.Error()) + "\n"
	}
	v := tea.NewView(text + "\nq ends\n")
	v.AltScreen = true
	return v
}

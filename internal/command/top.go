package command

import (
	"context"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/agent-troupe/troupe/inspect"
)

// topInterval is the time between two looks at the hosts.
const topInterval = time.Second

func topPage() page {
	return page{text: `Usage: troupe top [flags]

Shows the sessions that troupe ps lists, and looks again each second.

  up, down   select a session (also k and j)
  Enter      show what it waits for and its actors; Enter or Esc goes back
  s          sort by the next column; r reverses the order
  q          end (also Ctrl-C)

Without a terminal it prints once what troupe ps prints.

With --cluster it shows all workers that share jobs, and these jobs. With --ui it shows all that in a
browser, and prints an address that lets one browser in.
`, groups: []flagGroup{{"Flags", append(viewFlags(false), windowFlags()...)}, {"Many machines", append([]flagSpec{
		{name: "cluster", help: "show the workers of --nats in place of the sessions of this machine", set: on(func(s *settings) *bool { return &s.machines.cluster })},
	}, serverFlags()...)}}}
}

// topCommand is troupe top.
func topCommand(ctx context.Context, p process, c *console, s *settings) int {
	if len(s.words) > 0 {
		return c.usage(&usageError{"troupe top takes no arguments", "leave them out"})
	}
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	if !s.window.open && (s.window.content || s.window.steer) {
		return c.usage(&usageError{"--ui-content and --ui-steer are for --ui", "add --ui"})
	}
	if s.machines.cluster {
		return topMachines(ctx, p, c, s)
	}
	if s.gave("nats") {
		return c.usage(&usageError{"--nats is for --cluster", "add --cluster"})
	}
	if s.window.open {
		return topWindow(ctx, p, c, s, s.windowHosts)
	}
	if !p.stdoutTTY || !p.stdinTTY || p.getenv("TERM") == "dumb" {
		return s.list(ctx, c)
	}
	_, err := tea.NewProgram(topModel{look: looker(ctx, s)}, tea.WithContext(ctx), tea.WithInput(p.stdin), tea.WithOutput(p.stdout),
		tea.WithEnvironment(os.Environ()), tea.WithoutSignalHandler()).Run()
	if err != nil && ctx.Err() == nil {
		return c.outputLost(err)
	}
	return exitOK
}

// looked is what the hosts have answered.
type looked struct {
	reports []*inspect.Report
	err     error // of those that did not
}

// lookAgain says that it is time to look at the hosts.
type lookAgain struct{}

// looker returns the command that asks the hosts.
func looker(ctx context.Context, s *settings) tea.Cmd {
	return func() tea.Msg {
		reports, err := s.ask(ctx)
		return looked{reports, err}
	}
}

// Init implements [tea.Model].
func (m topModel) Init() tea.Cmd { return m.look }

// Update implements [tea.Model].
func (m topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case looked:
		m.took(msg)
		return m, tea.Tick(topInterval, func(time.Time) tea.Msg { return lookAgain{} })
	case lookAgain:
		return m, m.look
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if m.pressed(msg.String()) {
			return m, tea.Quit
		}
	}
	return m, nil
}

// View implements [tea.Model].
func (m topModel) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	return v
}

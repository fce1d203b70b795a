package command

import "context"

func systemFlag() flagSpec {
	return flagSpec{name: "system-creds", arg: "FILE", help: "as --creds, of a user of the servers' system account: troupe then sees whether they sync each write, and compares their clocks", set: text(func(s *settings) *string { return &s.machines.servers.System })}
}

// checkServers says whether the servers of jobs on many machines keep them as they should.
func checkServers(ctx context.Context, m *examined) (found []finding) {
	all, err := m.machines.Check(ctx, m.s.machines.servers)
	for _, f := range all {
		found = append(found, finding{State: findingState(f.State), Text: f.Text, Fix: f.Fix})
	}
	if err != nil {
		found = append(found, wrong(err.Error(), "troupe worker --listen HOST:PORT runs a server; is it there, and do the credentials fit?"))
	}
	return found
}

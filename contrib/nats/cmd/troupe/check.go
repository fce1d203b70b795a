package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	troupenats "github.com/agent-troupe/troupe/contrib/nats"
	"github.com/agent-troupe/troupe/internal/command"
)

const (
	fine    = "ok"
	notable = "note"
	problem = "problem"
)

// clocksApart is how far the clocks of servers may be apart: a new leader that is this much ahead ends
// leases as much too early. It is an eighth of the lease of a cluster.
const clocksApart = 7500 * time.Millisecond

// Check implements command.Machines.
func (machines) Check(ctx context.Context, at command.Servers) (found []command.Finding, err error) {
	say := func(state, text, fix string) {
		found = append(found, command.Finding{State: state, Text: text, Fix: fix})
	}
	options, err := connection(at)
	if err != nil {
		return nil, err
	}
	nc, err := troupenats.Connect(at.URLs, options...)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	if version := nc.ConnectedServerVersion(); tooOld(version) {
		say(problem, "the server is "+version, "replace it by 2.11 or later: leases need messages with a time to live")
	} else {
		say(fine, fmt.Sprintf("%s is %s, %s away", nc.ConnectedServerName(), version, roundTrip(nc)), "")
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return found, err
	}
	account, err := js.AccountInfo(ctx)
	if err != nil {
		say(problem, fmt.Sprintf("there is no JetStream for this user: %v", err), "enable it on the servers, and for the account: jetstream { sync_interval: always }")
		return found, nil
	}
	say(store(account))
	clustered := nc.ConnectedClusterName() != ""
	if !clustered {
		say(notable, "one server keeps all jobs: its disk is the only copy, and while it is away workers wait", "a cluster of three servers loses nothing with one of them (docs/machines.md)")
	}
	streams := streamsOf(ctx, js)
	for _, i := range streams {
		switch name := i.Config.Name; {
		case i.Config.Storage == jetstream.MemoryStorage: // the directory of hosts
		case clustered && i.Config.Replicas < 3:
			say(problem, fmt.Sprintf("%s has %d replicas", name, i.Config.Replicas), "give it 3: nats stream edit "+name+" --replicas 3")
		case i.Cluster != nil && i.Cluster.Leader == "":
			say(problem, name+" has no leader", "start the servers that are down: two of three have to run")
		case i.Cluster != nil && slices.ContainsFunc(i.Cluster.Replicas, func(p *jetstream.PeerInfo) bool { return p.Offline || !p.Current }):
			say(problem, name+" has a replica that is offline or behind", "start that server, and wait until it has caught up")
		}
	}
	if len(streams) > 0 {
		say(fine, fmt.Sprintf("%d streams of jobs were looked at", len(streams)), "")
	}
	if at.System == "" {
		say(notable, "whether the servers sync each write cannot be seen by this user", "add --system-creds with a user of the system account, or look: jetstream { sync_interval: always }")
		return found, nil
	}
	more, err := system(ctx, at)
	return append(found, more...), err
}

// store is how full the servers are, for this account.
func store(a *jetstream.AccountInfo) (state, text, fix string) {
	text = fmt.Sprintf("JetStream has %d streams with %d MB", a.Streams, a.Store>>20)
	if most := a.Limits.MaxStore; most > 0 {
		text += fmt.Sprintf(" of %d MB", most>>20)
		if a.Store > uint64(most)*4/5 {
			return problem, text, "remove jobs that are over (troupe jobs rm), or raise the limit: a full server takes no results"
		}
	}
	return fine, text, ""
}

func roundTrip(nc *nats.Conn) string {
	d, err := nc.RTT()
	if err != nil {
		return "some time"
	}
	return d.Round(10 * time.Microsecond).String()
}

// tooOld reports whether a server is before 2.11.
func tooOld(version string) bool {
	part := strings.SplitN(version, ".", 3)
	if len(part) < 2 {
		return false
	}
	x, err := strconv.Atoi(part[0])
	y, no := strconv.Atoi(part[1])
	return err == nil && no == nil && (x < 2 || x == 2 && y < 11)
}

// streamsOf are those of jobs that this user may see.
func streamsOf(ctx context.Context, js jetstream.JetStream) (all []*jetstream.StreamInfo) {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	for i := range js.ListStreams(ctx).Info() {
		for _, prefix := range []string{"TROUPE_", "KV_TROUPE_", "OBJ_TROUPE_"} {
			if strings.HasPrefix(i.Config.Name, prefix) {
				all = append(all, i)
			}
		}
	}
	return all
}

// serverSays is the part of an answer of a server that is looked at.
type serverSays struct {
	Server struct {
		Name string    `json:"name"`
		Time time.Time `json:"time"`
	} `json:"server"`
	Data struct {
		Disabled bool `json:"disabled"`
		Config   struct {
			SyncAlways   bool          `json:"sync_always"`
			SyncInterval time.Duration `json:"sync_interval"`
		} `json:"config"`
	} `json:"data"`

	ahead time.Duration // of this machine's clock
}

// system asks all servers, as a user of the system account.
func system(ctx context.Context, at command.Servers) (found []command.Finding, err error) {
	at.Creds, at.Token = at.System, ""
	options, err := connection(at)
	if err != nil {
		return nil, err
	}
	nc, err := troupenats.Connect(at.URLs, options...)
	if err != nil {
		return nil, fmt.Errorf("--system-creds: %w", err)
	}
	defer nc.Close()
	all, err := ask(ctx, nc)
	if err != nil {
		return nil, fmt.Errorf("--system-creds: %w", err)
	}
	if len(all) == 0 {
		return []command.Finding{{State: problem, Text: "no server answers the user of --system-creds", Fix: "is it a user of the system account?"}}, nil
	}
	var least, most *serverSays
	for i := range all {
		s := &all[i]
		switch {
		case s.Data.Disabled:
			found = append(found, command.Finding{State: notable, Text: s.Server.Name + " has no JetStream"})
		case !s.Data.Config.SyncAlways:
			found = append(found, command.Finding{State: problem, Text: fmt.Sprintf("%s syncs what it has every %s: a loss of power takes results that were acknowledged", s.Server.Name, s.Data.Config.SyncInterval), Fix: "set jetstream { sync_interval: always } there"})
		default:
			found = append(found, command.Finding{State: fine, Text: s.Server.Name + " syncs each write"})
		}
		if least == nil || s.ahead < least.ahead {
			least = s
		}
		if most == nil || s.ahead > most.ahead {
			most = s
		}
	}
	if apart := most.ahead - least.ahead; apart > clocksApart {
		found = append(found, command.Finding{State: problem, Text: fmt.Sprintf("the clock of %s is %s ahead of that of %s: a new leader may end leases too early", most.Server.Name, apart.Round(time.Second), least.Server.Name), Fix: "run a time service on the servers"})
	} else if len(all) > 1 {
		found = append(found, command.Finding{State: fine, Text: fmt.Sprintf("the clocks of %d servers are less than %s apart", len(all), (apart + time.Second).Round(time.Second))})
	}
	return found, nil
}

// ask asks each server once, and waits for the slowest one a second after the last answer.
func ask(ctx context.Context, nc *nats.Conn) (all []serverSays, err error) {
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	if err := nc.PublishRequest("$SYS.REQ.SERVER.PING.JSZ", inbox, []byte(`{}`)); err != nil {
		return nil, err
	}
	for wait := 5 * time.Second; ; wait = time.Second { // the first answer may be late, and the others come with it
		try, cancel := context.WithTimeout(ctx, wait)
		m, err := answers.NextMsgWithContext(try)
		cancel()
		if err != nil {
			return all, ctx.Err()
		}
		var s serverSays
		if json.Unmarshal(m.Data, &s) != nil || s.Server.Name == "" {
			continue
		}
		s.ahead = time.Until(s.Server.Time)
		all = append(all, s)
	}
}

package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/sdk"
)

// natsVariable has the servers, if there is no --nats. It may have a token, which a flag would show to
// every user of the machine, so that no agent gets it.
const natsVariable = "TROUPE_NATS"

// machineSettings is what the flags of commands for many machines say.
type machineSettings struct {
	servers   Servers
	tokenFile string
	listen    string
	detach    bool
	attach    string
	lease     time.Duration
	labels    map[string]string // of a worker, or of the hosts that may run a job
	dir       string            // of a worker
	grace     time.Duration
	affinity  time.Duration
	// agentVersion is the release of the agent that a job asks for; "": any.
	agentVersion string
	move         bool
	check        bool
	host         string // of drain
	cluster      bool   // all machines are shown
	elsewhere    bool   // the agents run on other machines
	load         []sdk.LoadOption
}

// serverFlags say where the servers are, and who connects.
func serverFlags() []flagSpec {
	at := func(field func(*Servers) *string) setting {
		return text(func(s *settings) *string { return field(&s.machines.servers) })
	}
	return []flagSpec{
		{name: "nats", arg: "URL", help: "the servers, such as nats://first:4222; several with commas between them; default: the variable " + natsVariable, set: at(func(s *Servers) *string { return &s.URLs })},
		{name: "token-file", arg: "FILE", help: "has the token of the servers", set: text(func(s *settings) *string { return &s.machines.tokenFile })},
		{name: "creds", arg: "FILE", help: "the credentials of a user of the servers, or the seed of an nkey", set: at(func(s *Servers) *string { return &s.Creds })},
		{name: "tls-ca", arg: "FILE", help: "the certificates that the other side's certificate has to come from", set: at(func(s *Servers) *string { return &s.CA })},
		{name: "tls-cert", arg: "FILE", help: "the own certificate", set: at(func(s *Servers) *string { return &s.Cert })},
		{name: "tls-key", arg: "FILE", help: "and its key", set: at(func(s *Servers) *string { return &s.Key })},
	}
}

// sharedFlags are those of troupe batch for many machines.
func sharedFlags() []flagSpec {
	return append(serverFlags(),
		flagSpec{name: "detach", help: "with --nats: end when the servers have the job; --attach takes its results", set: on(func(s *settings) *bool { return &s.machines.detach })},
		flagSpec{name: "attach", arg: "JOB", help: "with --nats, without TASKS: take the results of this job into --out", set: text(func(s *settings) *string { return &s.machines.attach })},
		flagSpec{name: "lease", arg: "TIME", help: "with --nats: how long a worker may be silent until others get its tasks, in whole seconds; default: 1m on a cluster, 5m with one server", set: duration(func(s *settings) *time.Duration { return &s.machines.lease })},
		flagSpec{name: "account", arg: "NAME", help: "with --nats: the provider's account that the job uses: workers wait together when it is spent, and keep its limit (troupe ctl --account)", set: setAccount},
		flagSpec{name: "agent-version", arg: "RELEASE", help: "with --nats: only workers with this release of claude or qoder run the job: 2.1.329, or \">=2.1.300\"", set: setAgentVersion},
		flagSpec{name: "move", help: "with --nats: keep the session and the workspace of a task on the servers after each turn, so that another worker continues it when its worker is drained or lost", set: on(func(s *settings) *bool { return &s.machines.move })},
		labelFlag("host-label", "with --nats: only workers with this label run the job; may be repeated"),
	)
}

func setAccount(s *settings, v string) error {
	if !jobName.MatchString(v) {
		return fmt.Errorf("%q is no name: take 1 to 64 letters, digits, - and _", v)
	}
	s.batch.job.Account = v
	return nil
}

func labelFlag(name, help string) flagSpec {
	return flagSpec{name: name, arg: "KEY=VALUE", help: help, set: func(s *settings, v string) error {
		key, value, ok := strings.Cut(v, "=")
		if !ok || key == "" || value == "" {
			return fmt.Errorf("%q is not KEY=VALUE", v)
		}
		if s.machines.labels == nil {
			s.machines.labels = map[string]string{}
		}
		s.machines.labels[key] = value
		return nil
	}}
}

// fits reports whether a host has all labels that a job wants.
func fits(host, wanted map[string]string) bool {
	for key, value := range wanted { //troupe:maporder all of them count
		if host[key] != value {
			return false
		}
	}
	return true
}

// completeServers reads the token, and checks what the flags say together.
func (s *settings) completeServers(p process, command string) error {
	if p.machines == nil {
		return noMachines(command)
	}
	at := &s.machines.servers
	at.URLs = cmp.Or(at.URLs, p.getenv(natsVariable))
	if s.machines.tokenFile != "" {
		token, err := os.ReadFile(s.machines.tokenFile)
		if err != nil {
			return &usageError{problem: "--token-file: " + err.Error()}
		}
		if at.Token = strings.TrimSpace(string(token)); at.Token == "" {
			return &usageError{"--token-file: " + s.machines.tokenFile + " is empty", "copy the token of the first machine into it"}
		}
	}
	if (at.Cert == "") != (at.Key == "") {
		return &usageError{"--tls-cert and --tls-key belong together", "give both"}
	}
	return nil
}

// needsServers is the error of a command that was not told where the servers are.
func (s *settings) needsServers(command string) error {
	if s.machines.servers.URLs == "" {
		return &usageError{command + " needs servers", "add --nats URL, or set " + natsVariable}
	}
	return nil
}

// connect connects to the servers.
func (s *settings) connect(ctx context.Context, p process) (Cluster, error) {
	at := s.machines.servers
	at.Name = "troupe " + cmp.Or(at.Name, ownName())
	return p.machines.Connect(ctx, at)
}

// withoutToken is the addresses of servers without what they have of a user. They may have no scheme, and signs that
// no URL has.
func withoutToken(urls string) string {
	all := strings.Split(urls, ",")
	for i, one := range all {
		if at := strings.LastIndexByte(one, '@'); at >= 0 {
			scheme, _, ok := strings.Cut(one[:at], "://")
			if ok {
				scheme += "://"
			} else {
				scheme = ""
			}
			all[i] = scheme + one[at+1:]
		}
	}
	return strings.Join(all, ",")
}

// ownName is user@host.
func ownName() string {
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return name + "@" + hostName()
}

func hostName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "host"
	}
	return host
}

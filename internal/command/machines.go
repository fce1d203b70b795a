package command

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// Machines lets the command share jobs with other machines. The module that links the client of the
// servers gives it to [Program].
type Machines interface {
	// Connect connects to servers that run.
	Connect(ctx context.Context, at Servers) (Cluster, error)
	// Listen starts a server in this process, which ends with the cluster, and connects to it.
	// address is where other machines connect. at.URLs is host:port to listen on.
	Listen(ctx context.Context, at Servers, dir string) (c Cluster, address string, err error)
	// Check looks at the servers for troupe doctor.
	Check(ctx context.Context, at Servers) ([]Finding, error)
}

// Servers says where the servers are, and who connects.
type Servers struct {
	URLs  string // with commas between them; of Listen: host:port
	Token string // "": none
	// Creds is a file with the credentials of a user, or an nkey; "": none. System is one
	// of the system account, for Check.
	Creds, System string
	CA, Cert, Key string // files of TLS; "": none
	Name          string // of this program on the servers
}

// Finding is what a check of the servers has found. State is ok, note or problem.
type Finding struct{ State, Text, Fix string }

// Cluster is a connection to servers that keep jobs. Its calls wait while no server answers, until
// ctx ends.
type Cluster interface {
	// Submit keeps a job with its specification and files. The error matches [ErrJobThere] if there is
	// one with this name.
	Submit(ctx context.Context, e JobEntry, specification []byte, files ...File) error
	// Jobs returns all jobs, the oldest one first.
	Jobs(ctx context.Context) ([]JobEntry, error)
	// Watch yields each job, and then each one that changes or is removed, until ctx ends. An
	// error is yielded last.
	Watch(ctx context.Context) iter.Seq2[JobChange, error]
	// Specification returns that of a job. The error matches [ErrNoJob].
	Specification(ctx context.Context, job string) ([]byte, error)
	// Over says that all tasks of a job have results.
	Over(ctx context.Context, job string) error
	// NotOver takes that back: a task was requeued meanwhile.
	NotOver(ctx context.Context, job string) error
	// Reopen has all workers look at a job once more, also if it is over. The error matches [ErrNoJob] if it
	// is being removed.
	Reopen(ctx context.Context, job string) error
	// Remove removes a job with all that it has. The error matches [ErrNoJob].
	Remove(ctx context.Context, job string) error
	// Open opens the queue and the files of a job; end closes them.
	Open(ctx context.Context, e JobEntry) (q queue.Queue, files queue.Files, end func(), err error)
	// Beat says that a host is alive, and Leave that it has ended.
	Beat(ctx context.Context, h HostEntry) error
	Leave(ctx context.Context, host string) error
	// Drain has a host that is alive end as SIGTERM does. The error matches [ErrNoHost].
	Drain(ctx context.Context, host string) error
	// Limit sets how many tasks of an account run at the same time on all hosts; 0: any number.
	Limit(ctx context.Context, account string, n int) error
	// Park says until when nothing of an account starts.
	Park(ctx context.Context, c Cap) error
	// Caps returns what is known of accounts.
	Caps(ctx context.Context) ([]Cap, error)
	// Serve answers what others ask the host, with answers that each end with their function, until ctx ends.
	// The context of a function ends when its answer is read no more.
	Serve(ctx context.Context, host string, answer func(ctx context.Context, question []byte, to io.Writer) error) error
	// Ask asks a host, and returns the answer as it comes. The error, also of its reader, matches
	// [ErrNoHost] if the host is not there.
	Ask(ctx context.Context, host string, question []byte) (io.ReadCloser, error)
	// Hosts returns those that have said so in the last half minute, by name.
	Hosts(ctx context.Context) ([]HostEntry, error)
	Close()
}

// Errors of a [Cluster], to be matched with errors.Is.
var (
	ErrJobThere = errors.New("there is a job with this name")
	ErrNoJob    = errors.New("there is no job with this name")
	ErrNoHost   = errors.New("there is no worker with this name")
)

// JobState is where a job stands for all machines.
type JobState string

// States.
const (
	JobOpen     JobState = "open"     // workers run its tasks
	JobOver     JobState = "over"     // all tasks have results
	JobRemoving JobState = "removing" // it is being removed
)

// JobEntry is a job in the directory of jobs. Keys that this program does not know stay there.
type JobEntry struct {
	Job   string   `json:"job"`
	State JobState `json:"state"`
	// Protocol is what a worker must know to run it; see [protocolNumber].
	Protocol  int               `json:"protocol"`
	Title     string            `json:"title,omitempty"`
	Agent     string            `json:"agent"`
	Tasks     int               `json:"tasks"`
	Labels    map[string]string `json:"labels,omitempty"` // of the hosts that may run it
	Submitter string            `json:"submitter"`        // user@host
	Submitted time.Time         `json:"submitted"`
	Account   string            `json:"account,omitempty"` // "": no limit for all hosts
	// AgentVersion is the release that the job asks for, as --agent-version takes it; "": any.
	AgentVersion string `json:"agent_version,omitempty"`
	Lease        string `json:"lease,omitempty"` // how long a lease lasts, as Go writes it; "": as the servers say
}

// JobChange is a job of [Cluster.Watch].
type JobChange struct {
	JobEntry
	Removed bool // the entry has the name alone
	// Drain is a host that is to end, if it has started then; "": the change is about a job.
	Drain   string
	Started time.Time
}

// HostEntry is a worker in the directory of hosts.
type HostEntry struct {
	Host     string            `json:"host"`
	Machine  string            `json:"machine"` // its network name
	PID      int               `json:"pid"`
	Version  string            `json:"version"`
	Protocol int               `json:"protocol"`
	Agents   []string          `json:"agents"`
	Releases map[string]string `json:"releases,omitempty"` // of the agents that are programs
	Labels   map[string]string `json:"labels,omitempty"`
	Places   int               `json:"places"` // 0: as many as the model's API takes
	Running  int               `json:"running"`
	Draining bool              `json:"draining,omitempty"`
	Started  time.Time         `json:"started"`
	Seen     time.Time         `json:"seen"` // by the clock of the host
	Jobs     []HostJob         `json:"jobs,omitempty"`
}

// HostJob is what a worker knows of a job.
type HostJob struct {
	Job     string   `json:"job"`
	Account string   `json:"account,omitempty"`
	Running []string `json:"running,omitempty"` // tasks
	Over    int      `json:"over"`
	USD     float64  `json:"usd,omitempty"` // of all hosts
	Turns   int      `json:"turns,omitempty"`
	Why     string   `json:"why,omitempty"` // it does not run here
}

// protocolNumber is the protocol of jobs that this program knows: the form of a specification, and
// what programs write into a queue.
const protocolNumber = 1

// installMachines is how the command with the client is installed.
const installMachines = "git clone https://github.com/agent-troupe/troupe && go -C troupe/contrib/nats install ./cmd/troupe"

// noMachines is the error of a command that has no client.
func noMachines(what string) error {
	return &usageError{"this troupe was built without NATS, which " + what + " needs", "install the one that has it, which is the same command:\n  " + installMachines}
}

package troupenats

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Config configures [Open] and [OpenFiles]. Job is needed.
type Config struct {
	// Job names the job on the servers: 1 to 64 letters, digits, - and _. Programs that share
	// a job give the same name.
	Job string
	// TTL is how long a lease lasts unless it is extended, in whole seconds. The server ends
	// it up to a second later. Default: 0, a minute on a cluster; five minutes with a single
	// server, so that a restart of that server ends no lease.
	TTL time.Duration
	// Replicas is how many servers keep the job, when it is made. Default: 0, which is 3 on a
	// cluster and 1 on a single server. A cluster needs 3 to 5.
	Replicas int
	// Above is a number that the fences of the job are above: the highest one that the job has had
	// on servers that are lost. A job that was made anew without it is refused. Default: 0.
	Above uint64
	// Try is how long one request may take before it is made again. Default: 0, 3 s.
	Try time.Duration

	silence time.Duration // without anybody who answers, until the stream is asked for
	// For tests: what delete markers do to results, and leases that end at once.
	markers   time.Duration
	deletable bool
	protocol  string // of another version
}

var (
	jobName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	taskID  = regexp.MustCompile(`^[A-Za-z0-9._#-]{1,256}$`)
)

// complete returns the configuration with its defaults, for the servers of a connection. A
// connection that is coming back does not know them: it is waited for.
func (c Config) complete(ctx context.Context, nc *nats.Conn) (Config, error) {
	for !nc.IsConnected() {
		if nc.IsClosed() {
			return c, explain("connection", nats.ErrConnectionClosed)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return c, err
		}
	}
	clustered := nc.ConnectedClusterName() != ""
	if c.TTL == 0 {
		if c.TTL = 5 * time.Minute; clustered {
			c.TTL = time.Minute
		}
	}
	if c.Replicas == 0 {
		if c.Replicas = 1; clustered {
			c.Replicas = 3
		}
	}
	if c.Try == 0 {
		c.Try = 3 * time.Second
	}
	if c.protocol == "" {
		c.protocol = protocol
	}
	if c.silence == 0 {
		c.silence = 10 * time.Second
	}
	switch {
	case !jobName.MatchString(c.Job):
		return c, &Error{"Config.Job", fmt.Errorf("%w: %q", ErrConfig, c.Job), "take 1 to 64 letters, digits, - and _"}
	case c.TTL < time.Second || c.TTL%time.Second != 0:
		return c, &Error{"Config.TTL", fmt.Errorf("%w: %v", ErrConfig, c.TTL), "take whole seconds, at least one"}
	case c.Try < 0:
		return c, &Error{"Config.Try", fmt.Errorf("%w: %v", ErrConfig, c.Try), "take 0 for 3 s"}
	case c.Replicas < 0 || c.Replicas > 5:
		return c, &Error{"Config.Replicas", fmt.Errorf("%w: %d", ErrConfig, c.Replicas), "take 0, which is 3 on a cluster, or at most 5"}
	case clustered && c.Replicas < 3:
		return c, &Error{"Config.Replicas", fmt.Errorf("%w: %d", ErrReplicas, c.Replicas), "take 0 for 3"}
	case old(nc.ConnectedServerVersion()):
		return c, &Error{nc.ConnectedUrlRedacted(), fmt.Errorf("%w: %s", ErrOldServer, nc.ConnectedServerVersion()), "replace it: leases need messages with a time to live"}
	}
	return c, nil
}

// old reports whether a server is before 2.11. A build without a version number is new enough.
func old(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	x, err := strconv.Atoi(major)
	if err != nil {
		return false
	}
	y, err := strconv.Atoi(minor)
	return err == nil && (x < 2 || x == 2 && y < 11)
}

// Connect connects to servers: addresses as nats://host:port, with commas between them. A
// server must be there; a connection that is lost later tries without a limit to come back, and one
// that is silent for 20 to 30 s is lost. options override that. Close it after what uses it.
func Connect(urls string, options ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(urls, append([]nats.Option{nats.Name("troupe"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.PingInterval(10 * time.Second)}, options...)...)
	if err != nil {
		return nil, &Error{"connect", err, "is a server there, and are the credentials right?"}
	}
	return nc, nil
}

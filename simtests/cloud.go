package simtests

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// OpenCloud connects a client to Qoder's Cloud Agents service in memory. The options are
// those of production, but for Runtime and Backend, which are the world's; nil continues the
// cloud session "s". Of the server the world sets Clock, Exec and, together with the server's
// own, Fault, so a server belongs to one world. Its clients may be many. An error ends the
// scenario as a failure; [World.DialCloud] returns it.
func (w *World) OpenCloud(o *sdk.Options, s *cloudtest.Server) *sdk.Client {
	w.Helper()
	c, err := w.DialCloud(o, s)
	if err != nil {
		w.Fatalf("open a session in the cloud: %v", err)
	}
	return c
}

// DialCloud is [World.OpenCloud] for sessions that may not start.
func (w *World) DialCloud(o *sdk.Options, s *cloudtest.Server) (*sdk.Client, error) {
	own := sdk.Options{}
	if o != nil {
		own = *o
	}
	if own.ExperimentalCloudAgent == nil {
		own.ExperimentalCloudAgent = &session.CloudAgent{Session: session.CloudSession{ID: "s"}}
	}
	if own.Auth == nil {
		own.Auth = &session.Auth{Type: session.AuthAccessToken, AccessToken: "simulated"}
	}
	w.serve(s)
	own.Runtime = w.rt
	own.Backend = cloud.Backend(cloud.Config{HTTP: s, BaseURL: "https://cloud.invalid"})
	w.watch(&own, nil)
	c := sdk.NewClient(&own)
	if err := c.Connect(w.ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// executor is that of the world's tasks.
func (w *World) executor() session.Executor {
	if e := w.sched.Config().Executor; e != nil {
		return e
	}
	return kernel.GoExecutor{}
}

// serve has a service live in the world.
func (w *World) serve(s *cloudtest.Server) {
	if s.Exec != nil {
		return
	}
	s.Clock, s.Exec = w.sched, w.executor()
	before := s.Fault
	s.Fault = func(n int, r *cloudtest.Request) *cloudtest.Fault {
		lane := w.sched.running()
		w.note(Event{Kind: "note", Lane: lane, What: r.Method + " " + r.Path})
		if before != nil {
			if f := before(n, r); f != nil {
				return f
			}
		}
		kinds := []faultKind{faultRequest, faultAnswer}
		if r.Stream() {
			kinds[0] = faultStream
		}
		if hit := w.strike(lane, "", kinds...); hit != nil {
			f := hit.cloud(hit.rng)
			return &f
		}
		return nil
	}
}

// cloudFault is a fault of the service in memory.
func cloudFault(name string, kind faultKind, p float64, f func(*rand.Rand) cloudtest.Fault) (fault Fault) {
	return Fault{name: name, kind: kind, p: p, cloud: f}
}

// RequestLost lets a request to the cloud have its effect, and breaks the connection before
// the answer. Streams of events have separate faults.
func RequestLost(p float64) Fault {
	return cloudFault("RequestLost", faultRequest, p, func(*rand.Rand) cloudtest.Fault { return cloudtest.Fault{Lost: true} })
}

// RequestRefused gives a request to the cloud, also one for a stream of events, no connection.
func RequestRefused(p float64) Fault {
	return cloudFault("RequestRefused", faultAnswer, p, func(*rand.Rand) cloudtest.Fault { return cloudtest.Fault{NoConnection: true} })
}

// RequestFails answers a request to the cloud, also one for a stream of events, with an HTTP
// status. 429 has a Retry-After header of 1 to 30 seconds. Whether the request has its effect
// is drawn with a status of 500 or more; below, it has no effect.
func RequestFails(p float64, status int) Fault {
	return cloudFault(fmt.Sprintf("RequestFails(%d)", status), faultAnswer, p, func(rng *rand.Rand) cloudtest.Fault {
		fault := cloudtest.Fault{Status: status, NoEffect: rng.IntN(2) == 0}
		if status == http.StatusTooManyRequests {
			fault.RetryAfter = strconv.Itoa(1 + rng.IntN(30))
		}
		return fault
	})
}

// RequestSlow answers a request to the cloud, also one for a stream of events, after d.
func RequestSlow(p float64, d time.Duration) Fault {
	return cloudFault("RequestSlow", faultAnswer, p, func(*rand.Rand) cloudtest.Fault { return cloudtest.Fault{Delay: d} })
}

// maxBytes is the part of a stream where it breaks, ends or falls silent.
const maxBytes = 1500

// StreamBreaks breaks the connection of a stream of events after up to 1,500 bytes. It is
// drawn for each stream, as are all faults of streams.
func StreamBreaks(p float64) Fault {
	return cloudFault("StreamBreaks", faultStream, p, func(rng *rand.Rand) cloudtest.Fault { return cloudtest.Fault{ResetAt: 1 + rng.IntN(maxBytes)} })
}

// StreamEnds ends a stream of events after up to 1,500 bytes.
func StreamEnds(p float64) Fault {
	return cloudFault("StreamEnds", faultStream, p, func(rng *rand.Rand) cloudtest.Fault { return cloudtest.Fault{EndAt: 1 + rng.IntN(maxBytes)} })
}

// StreamSilent lets nothing more come on a stream of events after up to 1,500 bytes, not even
// its end: the connection is half-open.
func StreamSilent(p float64) Fault {
	return cloudFault("StreamSilent", faultStream, p, func(rng *rand.Rand) cloudtest.Fault { return cloudtest.Fault{SilentAt: 1 + rng.IntN(maxBytes)} })
}

// StreamDrips sends a stream of events byte by byte, with d between two.
func StreamDrips(p float64, d time.Duration) Fault {
	return cloudFault("StreamDrips", faultStream, p, func(*rand.Rand) cloudtest.Fault { return cloudtest.Fault{Drip: d} })
}

// EventsTwice sends each event of a stream twice.
func EventsTwice(p float64) Fault {
	return cloudFault("EventsTwice", faultStream, p, func(*rand.Rand) cloudtest.Fault { return cloudtest.Fault{Twice: true} })
}

// EventsSwapped sends the events of a turn that are there in another order; its end stays last.
func EventsSwapped(p float64) Fault {
	return cloudFault("EventsSwapped", faultStream, p, func(*rand.Rand) cloudtest.Fault { return cloudtest.Fault{Swapped: true} })
}

// EventsAgain begins a stream with the first event of the cloud session, whatever was asked for.
func EventsAgain(p float64) Fault {
	return cloudFault("EventsAgain", faultStream, p, func(*rand.Rand) cloudtest.Fault { return cloudtest.Fault{FromStart: true} })
}

// Command fleet is a service that has many agent sessions, with an HTTP API.
//
//	go run ./examples/fleet                 # scripted agents, no account
//	go run ./examples/fleet -agent claude   # Claude Code; or qoder
//
// Use the printed commands in another terminal, as often and as many at a time as you
// like; kill -TERM the program while something runs.
//
// Look for: a session outlives its connection and, with -idle, its process. A reader that
// is too slow misses events, and gets an event that says so; it does not delay the others.
// A call that needs a permission waits for a person. At SIGTERM turns that run come to
// their end, nothing new starts, and no process is left.
//
// Without a terminal and without -port, or with TROUPE_SMOKE=1, the program uses its own
// API once, prints what it says, and ends.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/examples/internal/demo"
	"github.com/agent-troupe/troupe/runtime"
)

type settings struct {
	agent       string
	port, limit int
	idle, grace time.Duration
	alone       bool
}

func main() {
	var s settings
	flag.StringVar(&s.agent, "agent", "scripted", "scripted, claude or qoder")
	flag.IntVar(&s.port, "port", 0, "where to listen on 127.0.0.1; 0: a free port")
	flag.IntVar(&s.limit, "sessions", 100, "the most sessions at a time; more of them wait")
	flag.DurationVar(&s.idle, "idle", 5*time.Minute, "the time after which a session that nobody uses gives its process up")
	flag.DurationVar(&s.grace, "grace", 30*time.Second, "how long turns may go on after SIGTERM")
	flag.Parse()
	s.alone = os.Getenv("TROUPE_SMOKE") != "" || s.port == 0 && !demo.Terminal(os.Stdin)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, s settings) error {
	opts, err := options(s.agent)
	if err != nil {
		return err
	}
	rt, err := runtime.New(runtime.Config{Admission: runtime.Admission{MaxSessions: s.limit, StartsPerSecond: 10, MaxWait: time.Minute}})
	if err != nil {
		return err
	}
	opts.Runtime, opts.PassivateAfter = rt, s.idle
	service := newService(rt, opts, rand.Text())
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		return errors.Join(err, rt.Shutdown(ctx))
	}
	address := "http://" + listener.Addr().String()
	server := &http.Server{Handler: service.routes(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if s.alone {
		err = visit(ctx, address, service.token, os.Stdout)
	} else {
		fmt.Printf(usage, address, service.token)
		select {
		case err = <-served:
		case <-ctx.Done():
			log.Println("draining: turns that run may go on for", s.grace)
		}
	}
	over, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace+time.Minute)
	defer cancel()
	service.drain(over, s.grace)
	return errors.Join(err, server.Shutdown(over), rt.Shutdown(over))
}

const usage = `api=%s token=%s
curl() { command curl -sH "Authorization: Bearer $token" "$@"; }
curl -d '{"prompt":"Say hello."}' $api/sessions
curl -N $api/sessions/ID/events
curl -d '{"text":"And now?"}' $api/sessions/ID/messages
curl -X POST $api/sessions/ID/interrupt
curl $api/approvals
curl -d '{"hash":"HASH","allow":true}' $api/approvals/ID
curl $api/sessions
curl $api/metrics
curl -X DELETE $api/sessions/ID
`

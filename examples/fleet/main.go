// Command fleet is a service that has many agent sessions, with an HTTP API.
//
//	go run ./examples/fleet                 # demonstrations, no account
//	go run ./examples/fleet -agent claude   # Claude Code; or qoder; -model: the embedded agent
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
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/runtime"
)

func main() {
	agent := choice.Flags()
	port := flag.Int("port", 0, "where to listen on 127.0.0.1; 0: a free port")
	limit := flag.Int("sessions", 100, "the most sessions at a time; more of them wait")
	idle := flag.Duration("idle", 5*time.Minute, "the time after which a session that nobody uses gives its process up")
	grace := flag.Duration("grace", 30*time.Second, "how long turns may go on after SIGTERM")
	flag.Parse()
	alone := os.Getenv("TROUPE_SMOKE") != "" || *port == 0 && !choice.Terminal(os.Stdin)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := newService(agent, *limit, *idle)
	if err == nil {
		err = s.serve(ctx, *port, *grace, alone)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func newService(agent *choice.Agent, limit int, idle time.Duration) (*service, error) {
	opts, err := agent.Options()
	if err != nil {
		return nil, err
	}
	rt, err := runtime.New(runtime.Config{Admission: runtime.Admission{MaxSessions: limit, StartsPerSecond: 10, MaxWait: time.Minute}})
	opts.Runtime, opts.PassivateAfter = rt, idle
	opts.AllowedTools = nil // a person decides about each call
	return &service{rt: rt, opts: opts, patience: 30 * time.Second, beat: 15 * time.Second, window: "/window/" + rand.Text() + "/"}, err
}

// serve serves until ctx ends. Then it takes nothing new, and turns that run may come to
// their end within the grace.
func (s *service) serve(ctx context.Context, port int, grace time.Duration, alone bool) error {
	address, token := fmt.Sprintf("127.0.0.1:%d", port), rand.Text()
	listener, err := net.Listen("tcp", address)
	server := &http.Server{Handler: s.routes(token), ReadHeaderTimeout: 10 * time.Second}
	if err == nil {
		address = "http://" + listener.Addr().String()
		go func() { _ = server.Serve(listener) }()
		if alone {
			err = visit(ctx, address, token, os.Stdout)
		} else {
			fmt.Printf(usage, address, token, s.window)
			<-ctx.Done()
			log.Println("draining: turns that run may go on for", grace)
		}
	}
	over := context.WithoutCancel(ctx)
	waiting, cancel := context.WithTimeout(over, grace)
	defer cancel()
	return errors.Join(err, s.rt.Drain(waiting), s.rt.Shutdown(over), server.Shutdown(over))
}

const usage = `api=%s token=%s
curl() { command curl -sH "Authorization: Bearer $token" "$@"; }
curl -d text='Run the tests.' $api/sessions
curl -N $api/sessions/ID/events
curl -d text='And now?' $api/sessions/ID/messages
curl -d allow=true $api/approvals/ID
curl $api/sessions $api/metrics
xdg-open $api%s # its pages; log in with the token
curl -X POST $api/sessions/ID/interrupt; curl -X DELETE $api/sessions/ID
`

// visit uses the service once.
func visit(ctx context.Context, address, token string, out io.Writer) (err error) {
	call := func(method, path string, each func(line string) (enough bool)) {
		r, _ := http.NewRequestWithContext(ctx, method, address+path, http.NoBody) // the address is one
		r.Header.Set("Authorization", "Bearer "+token)
		resp, failed := http.DefaultClient.Do(r)
		if err = errors.Join(err, failed); failed != nil {
			return
		}
		defer func() { _ = resp.Body.Close() }()
		for lines := bufio.NewScanner(resp.Body); lines.Scan() && !each(lines.Text()); {
		}
	}
	var made struct{ ID string }
	call(http.MethodPost, "/sessions?text=Run+the+tests.", func(line string) bool { return json.Unmarshal([]byte(line), &made) == nil })
	call(http.MethodGet, "/sessions/"+made.ID+"/events", func(line string) bool {
		_, _ = fmt.Fprintln(out, line)
		var e struct{ ID, Tool, Type string }
		_ = json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &e) // or the line is something else
		if e.Tool != "" {
			call(http.MethodPost, "/approvals/"+e.ID+"?allow=true", func(string) bool { return true })
		}
		return e.Type == "result"
	})
	return err
}
